// Where the identity provider answers a renewal, in a frame that nobody sees:
// the page that asked for it gets the answer. See src/state/renewal.ts.
parent.postMessage(location.search, location.origin);
