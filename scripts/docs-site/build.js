/** Builds the site, and beside it the city to look at; fails if the site's build says anything that is a warning. */
import { spawnSync } from 'node:child_process';

const { status, stdout, stderr } = spawnSync('npx', ['vitepress', 'build'], { encoding: 'utf8' });
process.stdout.write(stdout);
process.stderr.write(stderr);
const warning = /^.*(warn|deprecat|could not|not found|\(!\)).*$/im.exec(stdout + stderr);
if (status !== 0 || warning) {
  console.error(`docs: the build failed${warning ? `, or warned: ${warning[0].trim()}` : ''}`);
  process.exit(1);
}

const city = spawnSync('../page.sh', ['types', 'try'], { stdio: 'inherit' });
process.exitCode = city.status ?? 1;
