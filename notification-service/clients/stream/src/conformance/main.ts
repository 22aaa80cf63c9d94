#!/usr/bin/env node
/** Checks whether a live stream keeps what its manual promises, and prints TAP. */
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';

import { CASES, Skip, type Suite, type Trigger } from './cases.js';

const USAGE = `usage: cityconnect-stream-conformance URL --token TOKEN [option …]

  URL                the stream, such as https://city.example.org/notifications/stream
  --token TOKEN      the token of a resident whom nobody else notifies
  --header 'N: V'    sent with each request, in place of a token
  --notify WHAT      has exactly one notification sent to that resident
  --break WHAT       breaks the connections, as by kill -9 of a replica
  --drain WHAT       ends the streams as planned, as by SIGTERM of a replica
  --overload WHAT    makes the server full
  --patience S       how long to wait for what has to come; 10 by default
  --case NAME        only this case; may be repeated

WHAT is a shell command, or an http or https URL that is requested by POST. It
succeeds when it has been done.`;

/** Runs a command, or requests a URL. */
async function perform(what: string): Promise<void> {
  if (/^https?:\/\//.test(what)) {
    const answer = await fetch(what, { method: 'POST' });
    await answer.body?.cancel();
    if (!answer.ok) throw new Error(`POST ${what} is answered ${answer.status}`);
    return;
  }
  const code = await new Promise((resolve) => spawn(what, { shell: true, stdio: ['ignore', 'ignore', 'inherit'] }).on('close', resolve));
  if (code !== 0) throw new Error(`“${what}” ended with ${String(code)}`);
}

function parse() {
  const text = { type: 'string' } as const;
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      token: text,
      header: { type: 'string', multiple: true },
      notify: text,
      break: text,
      drain: text,
      overload: text,
      patience: { type: 'string', default: '10' },
      case: { type: 'string', multiple: true, default: Object.keys(CASES) },
    },
  });
  const [url, ...others] = positionals;
  const patienceMs = Number(values.patience) * 1_000;
  const unknown = values.case.find((name) => !(name in CASES));
  if (unknown !== undefined) throw new Error(`there is no case ${unknown}; there are ${Object.keys(CASES).join(', ')}`);
  if (!url || others.length > 0 || !(patienceMs > 0) || !(values.token || values.header)) throw new Error('URL, --token, --patience');
  const headers = Object.fromEntries((values.header ?? []).map((line) => line.split(/:\s*(.*)/s).slice(0, 2) as [string, string]));
  if (values.token) headers.Authorization = `Bearer ${values.token}`;
  const trigger = async (what: Trigger) => {
    const how = values[what];
    if (!how) throw new Skip(`nobody has said how: --${what}`);
    await perform(how);
  };
  return { suite: { url, headers, patienceMs, trigger } as Suite, names: values.case };
}

/** A name, and what became of its case, as lines of TAP. */
async function run(suite: Suite, name: string, number: number): Promise<{ failed: boolean; lines: string }> {
  try {
    await CASES[name]?.(suite);
    return { failed: false, lines: `ok ${number} - ${name}` };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof Skip) return { failed: false, lines: `ok ${number} - ${name} # SKIP ${message}` };
    return { failed: true, lines: `not ok ${number} - ${name}\n  ---\n  message: ${JSON.stringify(message)}\n  ...` };
  }
}

async function main(): Promise<number> {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse();
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}\n`);
    return 2;
  }
  const { suite, names } = parsed;
  process.stdout.write(`TAP version 13\n1..${names.length}\n`);
  let failed = 0;
  for (const [i, name] of names.entries()) {
    const result = await run(suite, name, i + 1);
    if (result.failed) failed++;
    process.stdout.write(`${result.lines}\n`);
  }
  return failed > 0 ? 1 : 0;
}

process.exit(await main());
