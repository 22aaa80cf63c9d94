// Runs before the page's own script is there and before anything is painted.

// A chosen theme must not flash.
try {
  const theme = localStorage.getItem('cityconnect.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden; the system's theme serves then.
}

// Links of before the page had real addresses.
if (location.hash.startsWith('#/')) history.replaceState(null, '', location.hash.replace(/^#[/\\]+/, '/'));

// What the script will ask for first is on its way before it can ask. The
// browser hands it over if the address is the same to the letter.
const first = ['/config.json', '/session'];
if (location.pathname === '/' && !location.search) first.push('/reports?limit=20&brief=true&figures=true');
for (const href of first) {
  document.head.append(Object.assign(document.createElement('link'), { rel: 'preload', as: 'fetch', crossOrigin: 'anonymous', href }));
}

// So are the names of categories, in the language that was chosen here: a link could not ask for one.
let language;
try {
  language = localStorage.getItem('cityconnect.language');
} catch {
  // The browser's own languages serve then.
}
const spoken = language ?? navigator.language;
if (/^i[dn]\b/.test(spoken)) document.documentElement.lang = 'id';
globalThis.earlyCategories = fetch('/categories?include=retired', {
  headers: { Accept: 'application/json', ...(language && { 'Accept-Language': language }) },
}).catch(() => undefined);
