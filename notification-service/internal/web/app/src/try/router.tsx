/** preact-iso's router, as far as ui/router.tsx uses it, with addresses in the fragment. */
import { createContext, type ComponentChildren } from 'preact';
import { useContext, useEffect, useMemo, useState } from 'preact/hooks';

type Route = (address: string, replace?: boolean) => void;

const Shown = createContext<{ url: string; route: Route }>({ url: '', route: () => {} });
const current = () => location.pathname + location.search;

export const useLocation = () => useContext(Shown);

/** Follows links to the page's own addresses, in another tab if the reader asks for one. Links to a server lead nowhere. */
export function LocationProvider({ scope, children }: { scope: RegExp; children: ComponentChildren }) {
  const [url, setUrl] = useState(current);
  const route: Route = (address, replace) => {
    history[replace ? 'replaceState' : 'pushState'](null, '', `#${address}`);
    setUrl(current);
  };
  useEffect(() => {
    const back = () => setUrl(current);
    const follow = (event: MouseEvent) => {
      const link = event.composedPath().find((each) => each instanceof HTMLAnchorElement);
      const to = link?.getAttribute('href');
      if (!to?.startsWith('/') || event.button > 1) return;
      event.preventDefault();
      if (!scope.test(to)) return;
      if (event.button === 1 || event.ctrlKey || event.metaKey || event.shiftKey || link?.target === '_blank') window.open(`#${to}`);
      else route(to);
    };
    window.addEventListener('popstate', back);
    document.addEventListener('click', follow);
    document.addEventListener('auxclick', follow);
    return () => {
      window.removeEventListener('popstate', back);
      document.removeEventListener('click', follow);
      document.removeEventListener('auxclick', follow);
    };
  }, []);
  return <Shown.Provider value={useMemo(() => ({ url, route }), [url])}>{children}</Shown.Provider>;
}
