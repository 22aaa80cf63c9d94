import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const SOURCE = 'node_modules/maplibre-gl/dist/maplibre-gl.js';
const ID = 'virtual:maplibre';
/** The licence of what the module contains is found by this path. */
const RESOLVED = '\0node_modules/maplibre-gl/parts';

/**
 * MapLibre as three files: the page's part, the worker's, and what both share.
 *
 * Its ordinary build makes the worker of a blob, which the page's policy forbids.
 * Its build for such policies has the shared part twice. Both are made of the
 * same three functions, which are here put into files of their own, untouched.
 * While one works on the page, the build with the worker in a file will do.
 *
 * virtual:maplibre is the library, virtual:maplibre-shared the address of the
 * shared part, which can be on its way before the page's part asks for it.
 */
export function maplibre() {
  const addresses = {};
  let building = false;
  let index;
  return {
    name: 'maplibre',
    config(_, { command }) {
      building = command === 'build';
    },
    buildStart() {
      if (!building) return;
      const of = parts(readFileSync(SOURCE, 'utf8'));
      const emit = (name, source) => {
        const fileName = `assets/maplibre-${name}-${createHash('sha256').update(source).digest('base64url').slice(0, 8)}.js`;
        this.emitFile({ type: 'asset', fileName, source });
        addresses[name] = `/${fileName}`;
      };
      emit('shared', `globalThis.maplibreShared={};${of.shared}(globalThis.maplibreShared);\n`);
      emit('worker', `importScripts(${JSON.stringify(addresses.shared)});${of.worker}(globalThis.maplibreShared);\n`);
      index = of.index;
    },
    resolveId(id) {
      if (id === ID) return RESOLVED;
      if (id === `${ID}-shared`) return `\0${id}`;
      return id === addresses.shared ? { id, external: 'absolute' } : undefined;
    },
    load(id) {
      if (id === `\0${ID}-shared`) return `export default ${JSON.stringify(addresses.shared ?? '')};`;
      if (id !== RESOLVED) return undefined;
      if (!index) {
        return `
          import maplibregl from 'maplibre-gl/dist/maplibre-gl-csp';
          import worker from 'maplibre-gl/dist/maplibre-gl-csp-worker.js?url';
          maplibregl.setWorkerUrl(worker);
          export default maplibregl;`;
      }
      return `
        import ${JSON.stringify(addresses.shared)};
        const maplibregl = {};
        ${index}(maplibregl, globalThis.maplibreShared);
        maplibregl.setWorkerUrl(${JSON.stringify(addresses.worker)});
        export default maplibregl;`;
    },
  };
}

/** The three functions of MapLibre's ordinary build, which calls define() with each. */
function parts(source) {
  const functionOf = (name, dependencies, end) => {
    const head = `\ndefine("${name}",[${dependencies}],(function`;
    const begin = source.indexOf(head);
    const behind = source.indexOf(end, begin + 1);
    const text = source.slice(begin + head.length - '(function'.length, behind).trim();
    if (begin < 0 || behind < 0 || !text.endsWith('));')) throw new Error(`MapLibre has no part ${name} any more: see maplibre.js`);
    return text.slice(0, -');'.length);
  };
  return {
    shared: functionOf('shared', '"exports"', '\ndefine('),
    worker: functionOf('worker', '"./shared"', '\ndefine('),
    index: functionOf('index', '"exports","./shared"', '\n//\n'),
  };
}
