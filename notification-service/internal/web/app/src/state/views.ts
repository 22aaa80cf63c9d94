/** The filters of the queue that officials have named, each their own. */
import { must, reportService, type View } from '../api/client';

/** The greatest length that the API takes. */
export const MAX_VIEWS = 30;

export async function readViews(): Promise<View[]> {
  return (await must(reportService.GET('/reports/views'))).views;
}

/** Changes them as they are now: the same official may have changed them on another device. */
export async function changeViews(change: (views: View[]) => View[]): Promise<View[]> {
  const views = change(await readViews());
  return (await must(reportService.PUT('/reports/views', { body: { views } }))).views;
}
