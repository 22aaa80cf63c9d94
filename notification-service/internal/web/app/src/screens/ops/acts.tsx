import type { ComponentChildren } from 'preact';

import { session } from '../../state/session';

/** Whether the user reads all of the console and may change none of it. */
export const readsOnly = () => session.value?.role === 'auditor';

/** Buttons and forms that change something. An auditor would be answered 403, and does not see them. */
export function Acts({ children }: { children: ComponentChildren }) {
  return readsOnly() ? null : <>{children}</>;
}

/** Fields in which an auditor reads what is set. */
export function Fields({ children }: { children: ComponentChildren }) {
  if (!readsOnly()) return <>{children}</>;
  return (
    <fieldset class="bare stack" disabled>
      {children}
    </fieldset>
  );
}
