/** How this city set the page up: GET /config.json. */
export interface Config {
  auth: { mode: 'dev' } | { mode: 'oidc'; issuer: string; client_id: string; scope: string } | { mode: 'none' };
  /** Map tiles, off unless the city names a server of them. */
  tiles?: { url: string; attribution: string };
}

export let config: Config = { auth: { mode: 'none' } };

export async function loadConfig(): Promise<void> {
  const answer = await fetch('/config.json');
  if (answer.ok) config = (await answer.json()) as Config;
}
