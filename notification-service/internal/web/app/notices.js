import { existsSync, readdirSync, readFileSync } from 'node:fs';

/**
 * Writes third-party-notices.txt beside the page: the licences of the packages
 * that it is made of, be it by their modules or by files such as the typeface.
 */
export function thirdPartyNotices() {
  return {
    name: 'third-party-notices',
    generateBundle(_, bundle) {
      const files = Object.values(bundle).flatMap((part) => part.originalFileNames ?? []);
      const packages = [...this.getModuleIds(), ...files].map((file) => /.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]);
      const notices = [...new Set(packages.filter(Boolean).map((folder) => folder.replace(/.*node_modules\//, '')))].sort().map((name) => {
        const folder = `node_modules/${name}`;
        const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
        const texts = readdirSync(folder)
          .filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
          .map((file) => `${folder}/${file}`);
        // Some are published without the file that their repository has.
        if (texts.length === 0 && existsSync(`licences/${name}.txt`)) texts.push(`licences/${name}.txt`);
        if (texts.length === 0) this.error(`${name} has no licence`);
        return [`${name} ${version} (${license})`, ...texts.map((file) => readFileSync(file, 'utf8').trim())].join('\n\n');
      });
      const line = `\n\n${'='.repeat(78)}\n\n`;
      const source = ['What the page contains and others wrote, under these licences.', ...notices].join(line) + '\n';
      this.emitFile({ type: 'asset', fileName: 'third-party-notices.txt', source });
    },
  };
}
