import { must } from '../api/client';

/** The city's name, languages and links; absent fields are not set. */
export interface City {
  name?: string;
  /** The languages of its residents; the first is the default. */
  languages: string[];
  /** The languages that the city has words in besides the page's own, by their own names. */
  words?: Record<string, string>;
  /** The address of its picture. */
  logo?: string;
  /** Its colours in both themes, by the name of the page's own; absent without any. */
  colours?: Record<string, string>;
  links?: {
    privacy?: string;
    imprint?: string;
    accessibility?: string;
    terms?: string;
    contact?: string;
    /** A telephone number. */
    emergency?: string;
  };
}

/** How this city set the page up: GET /config.json. */
export interface Config {
  auth:
    | { mode: 'dev' }
    | { mode: 'oidc'; issuer: string; client_id: string; scope: string; audience?: string; resource?: string }
    | { mode: 'none' };
  /** Whether reports may have photos. */
  photos?: boolean;
  /** Whether residents comment on reports. */
  comments?: boolean;
  map: {
    /** The address of the city's tiles, if it has any, and whom they are owed to. */
    tiles?: string;
    attribution?: string;
    /** West, south, east, north. */
    bounds?: number[];
    /** Longitude, latitude, zoom. */
    center?: [number, number, number];
    /** Whether places can be looked for beyond the map's own names. */
    geocoder?: boolean;
  };
  /** The city's own name and looks; absent where nothing is set. */
  city?: City;
  /** Whether the city has a mail server, so that people may be asked for an address. */
  mails?: boolean;
  /** Whether notifications are pushed to devices. */
  push?: boolean;
  /** Whether one may report without an account. */
  guests?: boolean;
}

export let config: Config = { auth: { mode: 'none' }, map: {} };

/** The title of the page: after the city, where it has a name. */
export const cityName = () => config.city?.name ?? 'CityConnect';

/** Throws a Failure if it cannot be loaded: without it nobody could sign in. */
export async function loadConfig(): Promise<void> {
  config = await must(
    fetch('/config.json').then(async (response) => ({ response, ...(response.ok && { data: (await response.json()) as Config }) })),
  );
  for (const [name, colour] of Object.entries(config.city?.colours ?? {})) document.documentElement.style.setProperty(`--${name}`, colour);
}

/** Whether a position is in the city; without bounds every one is. */
export function inCity({ latitude, longitude }: { latitude: number; longitude: number }): boolean {
  const [west = -180, south = -90, east = 180, north = 90] = config.map.bounds ?? [];
  return longitude >= west && longitude <= east && latitude >= south && latitude <= north;
}

/** Whether there is anything to find places in: without a map only the geocoder. */
export const canSearch = (mapless = false) => Boolean((mapless ? undefined : config.map.tiles) ?? config.map.geocoder);
