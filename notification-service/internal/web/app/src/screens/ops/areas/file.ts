/** A city's borders as programs of maps write them, and what the service takes of them. */

type Properties = Record<string, unknown>;

interface Feature {
  geometry?: unknown;
  properties?: Properties | null;
}

/** Which properties of a file have an area's code, and its name in each language. */
export interface Chosen {
  code: string;
  names: Record<string, string>;
}

/** The features of a GeoJSON file; none if it is another one. */
export function featuresOf(text: string): Feature[] {
  try {
    const { features } = JSON.parse(text.replace(/^\uFEFF/, '')) as { features?: unknown };
    return Array.isArray(features) ? (features as Feature[]) : [];
  } catch {
    return [];
  }
}

/** Whether the features have their codes and names where the service expects them. */
export const isReady = (features: Feature[]) => features.every(({ properties }) => properties?.['code'] && properties['names']);

/** The properties whose values are a word or a number in every feature, in the order of the file. */
export function propertiesOf(features: Feature[]): string[] {
  const said = (value: unknown) => typeof value === 'number' || (typeof value === 'string' && value.trim() !== '');
  return Object.keys(features[0]?.properties ?? {}).filter((name) => features.every(({ properties }) => said(properties?.[name])));
}

/** The likely choice: a code differs in every feature and a name has letters; their names say more. */
export function guess(features: Feature[], languages: string[]): Chosen {
  const all = propertiesOf(features);
  const values = (name: string) => features.map(({ properties }) => String(properties?.[name]));
  const codes = all.filter((name) => new Set(values(name)).size === features.length);
  const names = all.filter((name) => values(name).every((value) => /\p{L}/u.test(value)));
  const named = names.find((name) => /nam/i.test(name)) ?? names[0] ?? '';
  const code = codes.find((name) => /kode|code|^id|_id$/i.test(name)) ?? codes[0] ?? named;
  const inLanguage = (language: string) => names.find((name) => new RegExp(`nam.*[_:-]${language}$`, 'i').test(name)) ?? named;
  return { code, names: Object.fromEntries(languages.map((language) => [language, inLanguage(language)])) };
}

/** Reads an area's code and names from its properties. What a code must not have becomes a hyphen. */
export function read({ properties }: Feature, chosen: Chosen): { code: string; names: Record<string, string> } {
  const text = (name: string) => {
    const value = properties?.[name];
    return typeof value === 'string' || typeof value === 'number' ? String(value).trim() : '';
  };
  const code = text(chosen.code)
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 40);
  return { code, names: Object.fromEntries(Object.entries(chosen.names).map(([language, name]) => [language, text(name)])) };
}

/** The file that the service takes. */
export function convert(features: Feature[], chosen: Chosen): string {
  const converted = features.map((feature) => ({ type: 'Feature', geometry: feature.geometry, properties: read(feature, chosen) }));
  return JSON.stringify({ type: 'FeatureCollection', features: converted });
}

/** The place that a JSON pointer of a fault names: the area by its number, and the ring and the point in it, all counted from 0. */
export function placeOf(pointer: string): { area: number | undefined; ring: number | undefined; point: number | undefined } {
  const [, area] = /^\/features\/(\d+)/.exec(pointer) ?? [];
  const steps = /\/geometry\/coordinates((?:\/\d+)*)$/.exec(pointer)?.[1]?.split('/').slice(1).map(Number) ?? [];
  // Of a multipolygon the first step is the polygon.
  const [ring, point] = steps.length > 2 ? steps.slice(1) : steps;
  return { area: area === undefined ? undefined : Number(area), ring, point };
}
