import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { t } from '../lang/i18n';

/** A component whose code is loaded when it is first shown. */
export function lazily<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let Loaded: ComponentType<P> | undefined;
  return function Lazy(props: P) {
    const [state, setState] = useState<'loading' | 'ready' | 'failed'>(Loaded ? 'ready' : 'loading');
    useEffect(() => {
      if (Loaded) return;
      load().then(
        (component) => {
          Loaded = component;
          setState('ready');
        },
        () => setState('failed'),
      );
    }, []);
    if (Loaded && state === 'ready') return <Loaded {...props} />;
    return <p class="empty">{t(state === 'failed' ? 'problem.no-answer' : 'loading')}</p>;
  };
}
