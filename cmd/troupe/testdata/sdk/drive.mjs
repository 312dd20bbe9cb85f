// Drives troupe with the published agent SDK, by its public interface, and
// prints what comes of it as one JSON object. Arguments: the SDK's module, the
// troupe program, the model, the scene.
import { pathToFileURL } from 'node:url';

const [sdk, troupe, model, scene] = process.argv.slice(2);
const { query } = await import(pathToFileURL(sdk).href);
const base = { pathToClaudeCodeExecutable: troupe, model, settingSources: [], stderr: (s) => process.stderr.write(s) };

// collect runs a query to its end and keeps what matters of its messages.
async function collect(q, each = async () => {}) {
	const out = { types: [], results: [], partial: '' };
	for await (const m of q) {
		out.types.push(m.subtype ? `${m.type}/${m.subtype}` : m.type);
		if (m.type === 'system' && m.subtype === 'init') out.init = { mode: m.permissionMode, model: m.model };
		if (m.type === 'stream_event' && m.event.delta?.text) out.partial += m.event.delta.text;
		if (m.type === 'result') out.results.push({ subtype: m.subtype, result: m.result, denials: m.permission_denials.length });
		out.session = m.session_id || out.session;
		await each(m, out);
	}
	return out;
}

// say is a prompt of the streaming input.
const say = (text) => ({ type: 'user', message: { role: 'user', content: text }, parent_tool_use_id: null });

// mail is an input that stays open until it is closed.
function mail() {
	const waiting = [];
	let wake = () => {};
	let open = true;
	return {
		put(m) { waiting.push(m); wake(); },
		close() { open = false; wake(); },
		async *[Symbol.asyncIterator]() {
			while (open || waiting.length) {
				if (waiting.length) yield waiting.shift();
				else await new Promise((r) => { wake = r; });
			}
		},
	};
}

const scenes = {
	async prompt() {
		return collect(query({ prompt: 'hello', options: { ...base, includePartialMessages: true } }));
	},
	async approval() {
		const asked = [];
		const canUseTool = async (name, input, o) => {
			asked.push({ name, input, suggestions: o.suggestions?.length, use: o.toolUseID !== '' });
			if (input.file_path === 'no.txt') return { behavior: 'deny', message: 'not this one' };
			return { behavior: 'allow', updatedInput: { ...input, content: 'as the user wants it\n' } };
		};
		const out = await collect(query({ prompt: 'write both', options: { ...base, canUseTool } }));
		return { ...out, asked };
	},
	async hook() {
		const seen = [];
		const pre = async (input, use) => {
			seen.push([input.hook_event_name, input.tool_name, use === input.tool_use_id]);
			return { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason: 'house rule' } };
		};
		const submit = async (input) => {
			seen.push([input.hook_event_name, input.prompt]);
			return { hookSpecificOutput: { hookEventName: 'UserPromptSubmit', additionalContext: 'It rains.' } };
		};
		let stops = 0;
		const stop = async (input) => {
			seen.push([input.hook_event_name, input.stop_hook_active]);
			return ++stops === 1 ? { decision: 'block', reason: 'one more thing' } : {};
		};
		const hooks = { PreToolUse: [{ matcher: 'Read', hooks: [pre] }], UserPromptSubmit: [{ hooks: [submit] }], Stop: [{ hooks: [stop] }] };
		const out = await collect(query({ prompt: 'read it', options: { ...base, hooks } }));
		return { ...out, seen };
	},
	async interrupt() {
		const box = mail();
		box.put(say('take long'));
		const q = query({ prompt: box, options: { ...base, permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true } });
		let turns = 0;
		let took;
		const out = await collect(q, async (m) => {
			if (m.type === 'assistant' && m.message.content.some((b) => b.type === 'tool_use')) {
				took = Date.now();
				await q.interrupt();
			}
			if (m.type !== 'result') return;
			if (++turns === 1) {
				took = Date.now() - took;
				await q.setPermissionMode('plan');
				await q.setModel(model);
				box.put(say('hello'));
			} else box.close();
		});
		return { ...out, took };
	},
	async resume() {
		const first = await collect(query({ prompt: 'remember blue', options: base }));
		const second = await collect(query({ prompt: 'which colour?', options: { ...base, resume: first.session } }));
		return { ...second, same: first.session === second.session };
	},
};

try {
	console.log(JSON.stringify(await scenes[scene]()));
} catch (e) {
	console.error(e.message);
	process.exit(1);
}
