import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { must, reportService } from '../api/client';
import { config } from '../state/config';

/** The first photo of a report, beside its title, which says what there is to say of it; without one the children. */
export function FirstPhoto({ photos, children = null }: { photos: readonly string[]; children?: ComponentChildren }) {
  if (!photos[0] || !config.photos) return <>{children}</>;
  return <img class="thumbnail" src={`/photos/${photos[0]}/320.jpg`} alt="" loading="lazy" width={64} height={64} />;
}

/** The same of a report of which only the id is known. */
export function FirstPhotoOf({ report }: { report: string }) {
  const [photos, setPhotos] = useState<string[]>([]);
  useEffect(() => {
    if (!config.photos) return;
    must(reportService.GET('/reports/{id}', { params: { path: { id: report } } })).then(
      (found) => setPhotos(found.photos),
      () => {}, // without it the popup says enough
    );
  }, [report]);
  return <FirstPhoto photos={photos} />;
}
