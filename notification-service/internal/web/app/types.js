// Writes the types of both services' requests and answers, from their OpenAPI
// documents. A build and the linters may run at the same time, so a file is
// replaced as a whole, and only if it changes.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';

for (const service of ['report', 'notification']) {
  const document = new URL(`../../../../docs/openapi/${service}-service.yaml`, import.meta.url);
  const file = new URL(`src/api/${service}.gen.ts`, import.meta.url);
  const types = astToString(await openapiTS(document, { defaultNonNullable: false }));
  if (existsSync(file) && readFileSync(file, 'utf8') === types) continue;
  const fresh = new URL(`${file}.${process.pid}`);
  writeFileSync(fresh, types);
  renameSync(fresh, file);
}
