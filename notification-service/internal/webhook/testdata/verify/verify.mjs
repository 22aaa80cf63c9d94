// Verifies requests with the npm package of Standard Webhooks. It reads
// [{secret, headers, body}] and fails unless all of them verify.
import { readFileSync } from 'node:fs';
import { Webhook } from 'standardwebhooks';

const requests = JSON.parse(readFileSync(0, 'utf8'));
let refused = 0;
for (const { secret, headers, body } of requests) {
  try {
    new Webhook(secret).verify(body, headers);
  } catch (error) {
    refused++;
    console.error(`${headers['webhook-id']}: ${error.message}`);
  }
}
console.log(`verified=${requests.length - refused} refused=${refused}`);
process.exit(refused || !requests.length ? 1 : 0);
