package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// settingsKeys are the keys at the top of a settings file that have an effect.
func settingsKeys() []string {
	return []string{"model", "models", "permissions", "env", "network", "catalogue", "passKeys", "sandbox", "limits", "agents", "background"}
}

// permissionKeys are those below permissions.
func permissionKeys() []string {
	return []string{"deny", "ask", "allow", "additionalDirectories", "defaultMode", "disableBypassPermissionsMode"}
}

// missing tells what a known key of a settings file, or of its permissions,
// does not do here and might be relied on; "" for any other key.
func missing(key string) string {
	switch key {
	case "hooks":
		return "hooks are not run"
	case "mcpServers":
		return "mcpServers are not started"
	case "enabledPlugins", "plugins":
		return key + " are not loaded"
	case "apiKeyHelper":
		return "apiKeyHelper is not run"
	case "modelPricing":
		return "modelPricing is not read (catalogue is)"
	case "disableAutoMode", "denyInsteadOfPrompting", "blockReadsOutsideWorkingDirectories", "blockWritesOutsideWorkingDirectories":
		return key + " is not enforced"
	}
	return ""
}

// elsewhere are keys of other tools that have no effect here and cost nothing
// but a look of their own.
var elsewhere = strings.Fields(`advisorModel agent allowManagedHooksOnly allowManagedPermissionRulesOnly allowedHttpHookUrls allowedMcpServers
	alwaysThinkingEnabled attribution autoCompactEnabled autoCompactWindow autoMemoryDirectory autoMemoryEnabled autoMode autoUpdatesChannel
	availableModels awsAuthRefresh awsCredentialExport bashOutputMaxChars claudeMdExcludes cleanupPeriodDays companyAnnouncements
	crossSessionInbound daemonColdStart defaultShell deniedMcpServers disableAgentView disableAllHooks disableWorkflows disabledMcpjsonServers
	editorMode effortLevel enableAllProjectMcpServers enabledMcpjsonServers extraKnownMarketplaces fallbackModel fastMode
	fileCheckpointingEnabled fileSuggestion forceLoginMethod forceLoginOrgUUID httpHookAllowedEnvVars includeCoAuthoredBy
	includeGitInstructions isolatePeerMachines language maxEffortLevel modelOverrides otelHeadersHelper outputStyle plansDirectory
	prefersReducedMotion promptCacheTtl respectGitignore showThinkingSummaries skillOverrides skipDangerousModePermissionPrompt
	spinnerTipsEnabled spinnerVerbs statusLine strictKnownMarketplaces subagentPromptCacheTtl subagentStatusLine taskOutputMaxChars
	teammateMode terminalProgressBarEnabled theme todoFeatureEnabled verbose viewMode voiceEnabled worktree
	blockReadsExemptPaths workingDirectoriesAsGiven workingDirectoriesExclude`)

// unknown tells of a key that has no effect: one that is known and might be
// relied on, one of another tool, or a slip.
func (r *settingsReader) unknown(f field, below string, known []string) {
	what := missing(f.key)
	switch {
	case f.key == "$schema":
	case what != "" && f.value.empty():
	case what != "":
		r.l.unused(r.from.source, below+what)
	case slices.Contains(elsewhere, f.key):
		r.l.cfg.Elsewhere = append(r.l.cfg.Elsewhere, r.l.show(r.from.source)+": "+below+f.key)
	default:
		p := Problem{r.l.show(r.from.source), f.line, f.col, fmt.Sprintf("the key %q is not known and has no effect", below+f.key)}
		if n := nearest(f.key, known); n != "" {
			p.Reason += fmt.Sprintf("; is %q meant?", n)
		}
		r.l.warn("%s", p.Error())
	}
}

// nearest returns the word that differs from s by case or a slip, "" if there is none.
func nearest(s string, words []string) string {
	for _, w := range words {
		if strings.EqualFold(s, w) || slip(strings.ToLower(s), strings.ToLower(w)) {
			return w
		}
	}
	return ""
}

// slip says whether a and b differ by one letter that is missing, too much or
// another, or by two that changed places.
func slip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	start := 0
	for start < len(a) && a[start] == b[start] {
		start++
	}
	a, b = a[start:], b[start:]
	switch len(b) - len(a) {
	case 0:
		return a != "" && (a[1:] == b[1:] || len(a) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:])
	case 1:
		return a == b[1:]
	}
	return false
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
