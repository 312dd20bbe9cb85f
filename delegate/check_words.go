package delegate

import (
	"regexp"
	"strings"
	"sync"
)

// promptWords are the words and forms by which [Check] judges.
type promptWords struct {
	english, foreign map[string]bool
	noPlace          map[string]bool // that look like a place and are none

	readOnly, except, changes, noChange, research *regexp.Regexp
	quoted, negated                               *regexp.Regexp
	handAway                                      []*regexp.Regexp
	places                                        []*regexp.Regexp // with what is looked up in noPlace, if anything, as the first group
	path, asksWhere, everywhere                   *regexp.Regexp
	question, reports, saysNothing                *regexp.Regexp
	deliverables                                  []*regexp.Regexp
	command, onlyLooks, bareCommand               *regexp.Regexp
	doneWhen, vacuous                             *regexp.Regexp
	criteria                                      []*regexp.Regexp
}

// promptPatterns are compiled when the first prompt is checked, as most
// sessions check none.
var promptPatterns = sync.OnceValue(func() *promptWords {
	return &promptWords{
		english: wordSet(englishWords), foreign: wordSet(foreignWords), noPlace: wordSet(noPlaceWords),

		readOnly: any1(`\bread[- ]only\b`, `\b(?:do not|don't|never|without) (?:\w+ )?(?:chang|edit|modif|writ|touch|creat)(?:e|es|ing|y|ying)? (?:any|no|file|files|code|anything|it|them|the)\b`,
			`\b(?:change|edit|modify|write|touch) (?:nothing|no (?:file|files|code))\b`, `\bonly (?:read|look)\b`, `\bno (?:changes|edits)\b[.,;]`),
		except:   any1(`\A\W*(?:except|unless|but|where|apart)\b`),
		changes:  any1(clauseStart + `(` + changeVerbs + `)\b`),
		noChange: any1(`\A\w+ (?:nothing|no|none)\b`, `\Amake sure\b`, `\A(?:create|write|make|build|do|compile) (?:me )?(?:up )?(?:a|an|the|your) (?:\w+ ){0,2}(?:report|summary|list|table|overview|comparison|plan|verdict|answer)\b`),
		research: any1(clauseStart + `(?:` + researchVerbs + `)\b`),

		quoted:   any1(`"[^"\n]{1,80}"`, `“[^”\n]{1,80}”`),
		negated:  any1(`\b(?:do not|don't|never|without|instead of)(?: \w+){0,2} $`, `\bnot(?: \w+)? $`),
		handAway: each(handAwayPhrases),

		places:     each(placeForms),
		path:       any1(pathForms...),
		asksWhere:  any1(`\bwhere\b`, `\bwhich\b`, `\b(?:find|list|search for|name|collect) (?:all|every|each|any)\b`, `\bcallers of\b`),
		everywhere: any1(`\b(?:this|the|whole|entire|our) (?:whole |entire )?(?:repo|repository|code ?base|monorepo|source tree|working tree)\b`),

		question:    any1(clauseStart+`(?:`+researchVerbs+`)\b[^.\n]*?\b(?:where|which|what|how|why|whether|who|when|if)\b`, clauseStart+`(?:where|which|what|how|why|whether|who)\b`),
		reports:     any1(clauseStart+`(?:`+reportVerbs+`)\b`, clauseStart+`(?:return|output|send|show)(?: me)?(?: back)?(?: only| just| both)?(?: a| an| the| your)?(?: \w+){0,2} (?:list|summary|report|table|paths?|findings|diff|files?|names?|verdict|hash|commit|answer|lines?|evidence|conclusion|places|what|which|where|how|yes)\b`),
		saysNothing: any1(`\A(?: back)?(?: to me| to us| me| in)?,?(?: when| once| if| after| as soon as)?(?: you're| you are| you have| it's| it is| this is| all is| everything is)?(?: done| finished| ready| complete| completed)?\s*(?:[.!;,:…]|and\b|then\b|$)`),
		deliverables: each([]string{
			`(?im)^[\W\d]*(?:deliverables?|report|answer|result|hand back|format|output|verdict)(?: format)?\s*:[ \t]*\S.{4,}`,
			`(?im)^\s*#+ *(?:deliverables?|report|answer|results?|output|format)\s*\n\s*\S`,
			`(?i)\b(?:deliverables?|hand back|format)\s*:\s*\S.{4,}`,
			`(?i)\b(?:give|have|reach|with) (?:me )?(?:a|your) verdict\b|\bverdict with\b`,
			`(?i)\bI (?:need|want|expect)\b.{0,80}\b(?:path|line|lines|list|table|summary|report|answer|figures|numbers|hash|diff)\b`,
			`(?i)\b(?:your|the|final) (?:final |last )?(?:message|report|answer|reply)\b.{0,20}\b(?:must|should|has|have|holds?|contains?|lists?|names?|with|says?)\b`,
			`(?i)\b(?:open|create|raise) (?:a|one) (?:PR|pull request)\b`,
			clauseStart + `commit\b`,
			clauseStart + `(?:write|create|make|compile|prepare|draw up) (?:me )?(?:up )?(?:a|an|the|your) (?:\w+ ){0,2}(?:report|summary|list|table|overview|comparison|verdict|answer)\b`,
		}),

		command:     any1(commandForm),
		onlyLooks:   any1(`^(?:\$ )?(?:git (?:log|status|show|clone|checkout|commit|add|push|pull|fetch|blame|switch|branch)|ls|cat|cd|head|tail|less|sed|find)\b`),
		bareCommand: any1(bareCommands...),
		doneWhen: any1(`\b(?:(?:done|finished|complete|ready|accepted|stop|finish)(?: when| if| once| as soon as|:)|` +
			`done-when|acceptance(?: criteria| criterion| test)?\s*[:\n]|success(?: criteria| criterion)?\s*[:\n]|definition of done|criteri(?:a|on))\W{0,4}(\w[^\n]{3,})`),
		vacuous:  any1(`\A(?:it|it's|everything|all|all of it|you|you're|the work|the task|the job|this)?\s*(?:'s|is|are|has been|have been|'re|was)?\s*(?:all|fully|really|completely)?\s*(?:done|finished|works?|working|happy|good|ready|complete|completed|fine|satisfied|ok|fixed|clean)\b(?:[.!;,]|$| when| with| now)`, `\Ayou (?:think|feel|believe|are)\b`),
		criteria: each(criteria),
	}
})

// any1 is a pattern that fits where one of the forms does, whatever the case.
func any1(forms ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?im)` + strings.Join(forms, "|"))
}

func each(forms []string) (out []*regexp.Regexp) {
	for _, f := range forms {
		if !strings.HasPrefix(f, "(?") || strings.HasPrefix(f, "(?:") {
			f = `(?im)` + f
		}
		out = append(out, regexp.MustCompile(f))
	}
	return out
}

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// clauseStart is where an order can begin.
const clauseStart = `(?:^\s*(?:[-•#>]+\s*|\d+[.)]\s*)?|[.;:!?,)(—–…]\s+|\b(?:and|then|please|also|must|should|now|just|first|next|finally|you to|task is to|task:|go ahead and|can you|could you|so)\s+)`

const changeVerbs = `fix|implement|add|change|refactor|rename|remove|delete|write|update|replace|create|make|migrate|port|convert|move|extract|bump|upgrade|downgrade|rewrite|introduce|edit|modify|clean|improve|optimi[sz]e|handle|correct|disable|enable|install|configure|apply|resolve|repair|address|support|build|develop|get|continue|finish|complete|do|take care|split|merge|simplify|restore|revert|drop|insert|extend|adapt|adjust|set|use|wire|wrap|speed|close|turn|stop|tune|harden|solve|deal with|sort out|bring`

const researchVerbs = `explore|find|search|investigate|research|list|read|look|review|explain|trace|map|understand|analy[sz]e|determine|identify|compare|check|verify|study|survey|examine|inspect|locate|summari[sz]e|describe|measure|count|audit|collect|tell|answer|what|where|which|how|why|who|does|do we|is|are|can`

const reportVerbs = `report|paste|attach|list|answer|tell(?: me| us)|reply|respond|summari[sz]e|hand back|hand over|give(?: me| us| back)?|name|quote|describe|explain|show me|send me|post|write up|note|say|state|provide|present|return to me`

// handAwayPhrases have an agent understand what the one who writes to it should
// have understood.
var handAwayPhrases = []string{
	`\b(?:based|building|acting|drawing) (?:up)?on (?:all )?(?:of )?(?:your|his|her|its|their|the (?:\w+ )?(?:agent|worker|reviewer|researcher|explorer)'s) (?:\w+ ){0,2}(?:` + discoveries + `|results?|work|review|report|analysis)\b`,
	`\b(?:based|building|acting|drawing) (?:up)?on (?:all )?(?:the|these|those|this|that|previous|earlier|prior) (?:\w+ ){0,2}(?:` + discoveries + `)\b`,
	`\b(?:based on|given|considering|using|with|from|following) what(?:ever)? (?:you|it|they|we|the (?:\w+ )?(?:agent|worker|reviewer|researcher))(?:'ve| have| has|'s|'d| had)? (?:\w+ )?(?:found|find|learned|learnt|discovered|identified|saw|know|reported|suggested|said)\b`,
	`\bnow that you(?:'ve| have)? (?:\w+ )?(?:understand|understood|know|seen|found|explored|investigated|researched|analy[sz]ed)\b`,
	`\bas you (?:see|think|deem|consider|find) (?:is |it )?(?:fit|best|necessary|right|appropriate|proper)\b`,
	`\b(?:how|what|which|wher)ever (?:way )?you (?:like|want|think|prefer|see|deem)\b`,
	`\b(?:the way|in the way|what|how) you (?:think|feel|believe|consider|deem)(?: that)?(?: it| this| is| would be| should be| looks| works)* (?:best|right|fit|fine|good)\b`,
	`\buse your (?:own |best |good )*(?:judge?ment|discretion|intuition)\b`,
	`\bat your (?:own )?discretion\b`,
	`\bfigure (?:it |this |that )?out (?:what|how)\b.{0,80}?\band (?:then )?(?:do|fix|implement|make|apply|change) (?:it|that|this|so|them|what)\b`,
	`\bfigure out what (?:to do|needs? to be done|is needed|has to be done|should be done|must be done)\b`,
	`\bdo what(?:ever)?(?:'s| is| seems| it| you| has| needs| must)?(?: think| can| to be| be| is)? ?(?:needed|necessary|required|best|right|takes|done)\b`,
	`\b(?:fix|address|resolve|solve|repair|handle|implement|apply|correct|do|make) (?:all |any |every |each )?(?:of )?(?:the |those |these |whatever |what |everything )?(?:\w+ )?(?:(?:issues?|problems?|bugs?|errors?|things|findings|failures|defects|points|recommendations?|suggestions?|fix|fixes|changes?|improvements?) )?(?:that |which )?(?:you|they|we|the (?:\w+ )?` + agents + `)(?:'ve|'d| have| has| had)? (?:\w+ )?(?:found|finds?|discover(?:ed|s)?|identif(?:ied|y|ies)|spotted|reported|noticed|suggest(?:ed|s)?|recommend(?:ed|s)?|propose[ds]?|described|listed|mentioned)\b`,
	`\b(?:identified|found|suggested|recommended|proposed|described|reported|discovered) by (?:the |an? )?(?:\w+ )?` + agents + `\b`,
	`\b(?:the|an?) (?:other|previous|earlier|first|last|research|verification|prior|exploration) ` + agents + `(?:'s)? (?:has|had|findings|found|suggest\w*|recommend\w*|report\w*|plan|analysis|results?|said|propos\w*)\b`,
	`\b(?:plan|findings|recommendations?|suggestions?|report|analysis|results?) (?:from|of|by) (?:the |an? )?(?:other|previous|earlier|first|last|research|verification|prior|exploration) ` + agents + `\b`,
	`\b(?:as we|that we|what we|we have|which we) (?:have |had |just |already )?(?:discussed|agreed|talked about)\b|\bas discussed\b`,
	`\byou (?:already )?know (?:what to do|the (?:details|context|rest|drill|plan))\b`,
	`\b(?:our|the) (?:conversation|discussion|chat) (?:above|so far|before|earlier)\b|\bour (?:conversation|discussion)\b`,
	`\bcontinue (?:from )?where (?:you|we|they|the)\b`,
}

const (
	discoveries = `findings?|research|investigations?|exploration|discover(?:y|ies)|recommendations?|suggestions?|insights?`
	agents      = `(?:agent|worker|sub-?agent|researcher|reviewer|verifier|explorer|teammate)`
)

// placeForms are the forms in which a text says where. The first group is not
// to be one of noPlaceWords.
var placeForms = append([]string{
	`\b(?:package|module|directory|folder|file|crate|function|method|class|type|struct|component|endpoint|service|table|branch|interface) ["']?([A-Za-z][\w.-]*)`,
	`\bthe ([a-z0-9_-]+) (?:package|module|directory|folder|crate|class|component|endpoint|service|binary|branch)\b`,
	`\bcommit [0-9a-f]{7,40}\b`,
	`\bRFC ?\d+\b`,
	`(?-i:\b[A-Za-z_]\w+\(\))`,
	`(?-i:\b([A-Za-z]\w+\.[A-Z]\w+)\b)`,
	`(?-i:\b[a-z0-9]+_[a-z0-9_]+\b)`,
	`(?-i:\b([a-z]+[A-Z]\w+)\b)`,
}, pathForms...)

// pathForms are the forms of paths. Two words with a stroke between them, as in
// read/write, are one only after a word of place.
var pathForms = []string{
	"(?:^|[\\s\"'(\\[=:,`])(?:~|\\.{1,2})?/[A-Za-z0-9_][\\w.-]*",
	`\b[A-Za-z]:\\\w`,
	`[\w.-]+/[\w./-]*\.[A-Za-z]\w{0,5}\b`,
	`\b[\w.-]+(?:/[\w.-]+){2,}`,
	"\\b[\\w.-]+/(?:$|[\\s.,:;)\"'`?…])",
	`\b([\w-]+\.(?:go|mod|sum|md|mdx|txt|rst|adoc|ts|tsx|js|jsx|mjs|cjs|vue|svelte|py|pyi|ipynb|rs|rb|erb|java|kt|kts|scala|groovy|c|h|cc|cpp|hpp|cxx|cs|fs|swift|m|mm|php|pl|pm|lua|r|jl|ex|exs|erl|hs|ml|clj|sh|bash|zsh|ps1|bat|sql|css|scss|less|html|xml|json|jsonl|yaml|yml|toml|ini|cfg|conf|env|lock|proto|graphql|tf|nix|gradle|cmake|mk|csv|svg|tmpl|txtar|zig|dart))\b`,
	`\b(?:Makefile|Dockerfile|CMakeLists|README|CHANGELOG|LICENSE|Gemfile|Cargo|Jenkinsfile|Justfile|Vagrantfile)\b`,
	`\b(?:in|under|at|from|of|into|package|directory|folder|module|file) ([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)`,
	`https?://\S+`,
}

const noPlaceWords = `that which and is are of to in for with where you it the a an has have does do will should if as or so from on by then must may can be was were
	not no but this these those we they when while after before also only all any your its their named called involved concerned needed affected touched changed
	changes passes pass fail fails suite suites cases green again right relevant same other whole entire appropriate corresponding wrong correct necessary new old
	main first last next own existing missing good best better different single every each some there here somewhere pass. green. again. somehow at too
	node.js next.js vue.js react.js express.js three.js nuxt.js d3.js nest.js read/write client/server input/output and/or either/or e.g i.e
	macos ios iphone ebay ipad javascript github gitlab postgresql mysql openai
	true false nil null none yes error errors done fixed bug code project`

// commandForm is the form of a command line of a program that is known, or that
// is in the directory.
const commandForm = `^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:(?:sudo|time|nice|timeout \S+|env|xvfb-run) )?(?:(?:make|pytest|tox|jest|vitest|ctest|rspec|tsc|just|phpunit|rake|gradle|ninja|rubocop|eslint|golangci-lint|staticcheck|shellcheck)(?:$|\s)|(?:go|npm|npx|pnpm|yarn|bun|deno|node|cargo|python|python3|pip|uv|poetry|ruff|mypy|black|git|grep|rg|diff|cmp|curl|wget|docker|podman|kubectl|helm|terraform|mvn|bazel|cmake|dotnet|swift|xcodebuild|bundle|rails|php|composer|mix|stack|cabal|sbt|lein|zig|prettier|playwright|cypress|bash|sh|zsh|ls|cat|cd|head|tail|wc|find|test|psql|sqlite3|hugo|mkdocs|jq|bats|ansible|nix|task|turbo|nx|javac|java|gcc|clang|perl|ruby|lua|sed|awk|less|strace|hyperfine|ab|wrk|dig|openssl|systemctl)\s+\S|\.{0,2}/[\w./-]+(?:\s|$)|(?:bin|script|scripts|hack|ci|\.ci)/[\w.-]+(?:\s|$)|[\w.-]+ --?[a-z])`

// bareCommands are command lines within a sentence.
var bareCommands = []string{
	`\bgo (?:test|build|vet|run|generate)\b`, `\b(?:npm|pnpm|yarn|bun) (?:test|run|ci|build|lint)\b`, `\bnpx \w`, `\bcargo (?:test|build|check|clippy|run)\b`,
	`\bmake (?:test|check|build|lint|all|ci|fmt|e2e|verify|bench|\w+-[\w-]+)\b`, `\bpytest\b`, `\bpython3? -m \w`, `\bgit (?:diff|grep)\b`, `\bdocker (?:build|run|compose)\b`,
	`\b(?:mvn|gradle|gradlew|bazel|dotnet|mix|swift) (?:test|build|verify|check)\b`, `\bbundle exec\b`, `\b(?:vitest|jest|rspec|ctest|tox|phpunit|tsc|eslint|mypy|golangci-lint)\b`,
	`\bgrep -\w`, `\bcurl -\w`, `\b(?:bin|scripts?)/[\w.-]+`,
}

// criteria say how one sees that something is done.
var criteria = []string{
	`\b(?:tests?|suite|build|lint|linter|type ?checks?|CI|checks?|benchmarks?|cases?|all)(?: \w+){0,3} (?:pass|passes|succeeds?|compiles?|(?:is|are|be|stays?|turns?) green)\b`,
	`\brun (?:the|all|its|their|every|relevant|existing|unit|integration)(?: \w+){0,3} (?:tests?|suite|checks?|linter)\b`,
	`\b(?:must|should|shall|has to|have to|needs? to)(?: then| now| still| always)?(?: not| no longer)? (?:return|print|exit|reject|accept|contain|equal|match|stay|succeed|show|pass|compile|respond|be (?:rejected|refused|empty|unchanged|equal|identical|accepted|silent|clean|green|valid|\d))\b`,
	`…[),]? (?:must|should|has to|have to|needs? to) \w`,
	`\b(?:must|should|shall|has to|have to|needs? to) fail\b`,
	`\b(?:exits?|returns?|exit code) (?:with )?(?:code |status )?[0-9]+\b`,
	`\b(?:below|under|at most|less than|no more than|at least|within) [0-9]+ ?(?:ms|s|seconds?|minutes?|[kmg]?i?b|%|percent|lines?|times|requests|tokens)`,
	`\bprints? nothing\b|\bno hits\b|\bno output\b|\b(?:is|are|stays?|remains?) (?:byte for byte )?(?:unchanged|identical)\b`,
}

const englishWords = `the and to of is with that from for this it not you be are on at by when which where what how why if do don't your all any must should
	fix add find implement explore investigate report change make write update remove rename refactor check verify run list read look handle improve please
	package function file test tests commit done research compare return a an in as or so we they has have there its into`

const foreignWords = `der die das und ist nicht ein eine den dem des im mit auf von zu aus bei wenn nur wird behebe bitte fehler melde untersuche fertig datei
	le la les du et est une un dans pas pour sur avec que qui quand corrige ajoute indique fichier sans rien
	el los las una del para con por sin al lo y en cuando ejecuta informa archivo
	il che di della nel con per non gli quando esegui correggi
	o os uma do da no na com quando execute relate leia
	het een van dat niet voor als wordt met
	di yang dan untuk dari pada lalu jalankan laporkan perbaiki baris
	och att som med inte och er og ikke nie jest oraz bu ve bir sonra`
