/** Photos of the finished work, which the service has before the report is resolved with them. */
import { Failure } from '../api/client';
import type { Choice } from './choice';
import { keep } from './store';
import { scaled } from './scale';
import { send } from './send';

/** Sends what was chosen; what is refused stays chosen, and throws. */
export async function sendFinished(choice: Choice, report: string, signal: AbortSignal): Promise<void> {
  await choice.added();
  for (const { preview: _, ...upload } of choice.list.value) {
    const picture = upload.quarters ? await scaled(upload.picture, upload.quarters) : upload.picture;
    // It is kept as it is sent: the same bytes each time.
    await keep({ ...upload, picture, quarters: 0 });
    if (!(await send({ ...upload, report, picture, purpose: 'after' }, () => {}, signal))) throw new Failure();
    choice.drop(upload.id);
  }
}
