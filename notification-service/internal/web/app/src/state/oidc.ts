/**
 * Signing in with the city's own identity provider: the authorization code
 * flow with PKCE. The access token is put into the session cookie at once and
 * is kept nowhere else.
 */
import * as oauth from 'oauth4webapi';

import { announceChange } from '../live/live';
import { config as pageConfig } from './config';
import { openSession } from './session';

/** The state that must be remembered while the user is at the provider. */
interface PendingSignIn {
  state: string;
  nonce: string;
  verifier: string;
  /** The address to return to. */
  address: string;
}

const STORAGE_KEY = 'cityconnect.sign-in';

function settings() {
  if (pageConfig.auth.mode !== 'oidc') throw new Error('no identity provider is configured');
  const issuer = new URL(pageConfig.auth.issuer);
  // A provider on this very machine needs no TLS.
  const loopback = ['127.0.0.1', 'localhost', '[::1]'].includes(issuer.hostname);
  return {
    ...pageConfig.auth,
    issuer,
    client: { client_id: pageConfig.auth.client_id },
    allow: { [oauth.allowInsecureRequests]: loopback },
  };
}

async function discover({ issuer, allow }: ReturnType<typeof settings>) {
  return oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { ...allow }));
}

/** Exactly what was registered with the provider. */
const redirectURI = () => `${location.origin}/`;

export async function beginSignIn(address: string): Promise<void> {
  const pending: PendingSignIn = { ...secrets(), address };
  sessionStorage.setItem(STORAGE_KEY, JSON.stringify(pending));
  location.assign(await authorizationURL(pending, redirectURI()));
}

type Secrets = Omit<PendingSignIn, 'address'>;

const secrets = (): Secrets => ({
  state: oauth.generateRandomState(),
  nonce: oauth.generateRandomNonce(),
  verifier: oauth.generateRandomCodeVerifier(),
});

async function authorizationURL(
  { state, nonce, verifier }: Secrets,
  redirect_uri: string,
  more: Record<string, string> = {},
): Promise<URL> {
  const config = settings();
  const url = new URL((await discover(config)).authorization_endpoint!);
  const query = {
    client_id: config.client_id,
    redirect_uri,
    response_type: 'code',
    scope: config.scope,
    state,
    nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...(config.audience && { audience: config.audience }),
    ...resourceOf(config),
    ...more,
  };
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url;
}

/** Which API the token is for, where the city named one (RFC 8707). It is sent with both requests. */
const resourceOf = ({ resource }: { resource?: string }): Record<string, string> => (resource ? { resource } : {});

/** The provider answers at once, or shows a page of its own, which is not an answer. */
const ANSWER_MS = 15_000;

/**
 * Asks the provider for another token without asking the user, in a hidden
 * frame. Throws if the provider's session has ended.
 */
export async function renewToken(): Promise<string> {
  const asked = secrets();
  const redirect = `${location.origin}/renew.html`;
  const url = await authorizationURL(asked, redirect, { prompt: 'none' });
  const frame = document.createElement('iframe');
  frame.hidden = true;
  try {
    const answer = await new Promise<string>((resolve, reject) => {
      setTimeout(() => reject(new Error('the identity provider did not answer')), ANSWER_MS);
      window.addEventListener('message', ({ source, origin, data }) => {
        if (origin === location.origin && source === frame.contentWindow && typeof data === 'string') resolve(data);
      });
      frame.src = url.href;
      document.body.append(frame);
    });
    return await exchange(new URL(redirect + answer), asked, redirect);
  } finally {
    frame.remove();
  }
}

/** Called when the provider has sent the user back. */
export async function finishSignIn(): Promise<void> {
  const pending = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? 'null') as PendingSignIn | null;
  sessionStorage.removeItem(STORAGE_KEY);
  let address = '/sign-in?failed=1';
  try {
    if (pending) {
      await openSession(await exchange(new URL(location.href), pending, redirectURI()));
      announceChange('session');
      address = pending.address;
    }
  } catch {
    // The provider refused, or it took too long; the sign-in page says so.
  }
  location.replace(address);
}

async function exchange(answer: URL, pending: Secrets, redirect: string): Promise<string> {
  const config = settings();
  const server = await discover(config);
  const params = oauth.validateAuthResponse(server, config.client, answer, pending.state);
  const response = await oauth.authorizationCodeGrantRequest(server, config.client, oauth.None(), params, redirect, pending.verifier, {
    ...config.allow,
    additionalParameters: resourceOf(config),
  });
  const tokens = await oauth.processAuthorizationCodeResponse(server, config.client, response, {
    expectedNonce: pending.nonce,
    requireIdToken: true,
  });
  return tokens.access_token;
}
