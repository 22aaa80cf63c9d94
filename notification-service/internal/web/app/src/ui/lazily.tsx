import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { t } from '../lang/i18n';
import { Skeleton } from './skeleton';

/**
 * A component whose code is loaded when it is first shown. Rows stand in for it,
 * or nothing if it is bare: a dialog, or a part that takes little room or none.
 */
export function lazily<P extends object>(load: () => Promise<ComponentType<P>>, bare = false): ComponentType<P> {
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
    if (state === 'failed') return <p class="empty">{t('problem.no-answer')}</p>;
    return bare ? null : <Skeleton />;
  };
}
