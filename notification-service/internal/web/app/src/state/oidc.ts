/**
 * Signing in with the city's own identity provider: the authorization code
 * flow with PKCE. What it gives is put into the session cookie at once, and
 * is kept nowhere else.
 */
import * as oauth from 'oauth4webapi';

import { tellOtherTabs } from '../live/live';
import { config } from './config';
import { openSession } from './session';

/** What must be remembered while the reader is at the provider. */
interface Errand {
  state: string;
  nonce: string;
  verifier: string;
  /** Where he wanted to go. */
  hash: string;
}

const ERRAND = 'cityconnect.sign-in';

function settings() {
  if (config.auth.mode !== 'oidc') throw new Error('no identity provider is configured');
  const issuer = new URL(config.auth.issuer);
  // A provider on this very machine may do without TLS; nobody listens in between.
  const loopback = ['127.0.0.1', 'localhost', '[::1]'].includes(issuer.hostname);
  return { ...config.auth, issuer, client: { client_id: config.auth.client_id }, allow: { [oauth.allowInsecureRequests]: loopback } };
}

async function discover({ issuer, allow }: ReturnType<typeof settings>) {
  return oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { ...allow }));
}

/** Exactly what was registered with the provider. */
const redirectURI = () => `${location.origin}/`;

export async function beginSignIn(hash: string): Promise<void> {
  const set = settings();
  const server = await discover(set);
  const errand: Errand = {
    state: oauth.generateRandomState(),
    nonce: oauth.generateRandomNonce(),
    verifier: oauth.generateRandomCodeVerifier(),
    hash,
  };
  sessionStorage.setItem(ERRAND, JSON.stringify(errand));
  const url = new URL(server.authorization_endpoint!);
  const query = {
    client_id: set.client_id,
    redirect_uri: redirectURI(),
    response_type: 'code',
    scope: set.scope,
    state: errand.state,
    nonce: errand.nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(errand.verifier),
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  location.assign(url);
}

/** Called when the provider has sent the reader back to us. */
export async function finishSignIn(): Promise<void> {
  const errand = JSON.parse(sessionStorage.getItem(ERRAND) ?? 'null') as Errand | null;
  sessionStorage.removeItem(ERRAND);
  let hash = '#/sign-in?failed=1';
  try {
    if (errand) {
      await openSession(await exchange(errand));
      tellOtherTabs('session');
      hash = errand.hash;
    }
  } catch {
    // Refused there, or too late here; the sign-in page says so.
  }
  location.replace(`/${hash}`);
}

async function exchange(errand: Errand): Promise<string> {
  const set = settings();
  const server = await discover(set);
  const params = oauth.validateAuthResponse(server, set.client, new URL(location.href), errand.state);
  const response = await oauth.authorizationCodeGrantRequest(server, set.client, oauth.None(), params, redirectURI(), errand.verifier, {
    ...set.allow,
  });
  const tokens = await oauth.processAuthorizationCodeResponse(server, set.client, response, {
    expectedNonce: errand.nonce,
    requireIdToken: true,
  });
  return tokens.access_token;
}
