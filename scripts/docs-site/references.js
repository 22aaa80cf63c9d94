/** Writes the references of the APIs into docs/api, for the site. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { parse } from 'yaml';

import { docs, references } from './api.js';

mkdirSync(join(docs, 'api'), { recursive: true });
for (const [name, text] of Object.entries(references(parse))) {
  // No menu lists a hundred schemas.
  writeFileSync(join(docs, 'api', `${name}.md`), `---\noutline: ${name === 'messages' ? '[2, 3]' : '2'}\n---\n\n${text}\n`);
}
