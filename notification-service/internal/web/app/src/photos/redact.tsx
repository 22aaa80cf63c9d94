import { useRef, useState } from 'preact/hooks';

import { must, reportService, type Photo } from '../api/client';
import { t } from '../lang/report';
import { useAct } from '../ui/act';
import { Modal } from '../ui/modal';
import { Fault } from '../ui/problem';

/** A part of a photo, in fractions of its width and height. */
interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The step by which a key moves or enlarges a rectangle, and its smallest side. */
const STEP = 0.02;

const within = (value: number, least: number, most: number) => Math.min(Math.max(value, least), most);

/** Makes parts of a photo black: drawn with a finger or the mouse, or added and moved by keys. */
export function Redact({ photo, onClose, onDone }: { photo: Photo; onClose(): void; onDone(): void }) {
  const [rects, setRects] = useState<Rect[]>([]);
  const { busy, error, run } = useAct();
  const from = useRef<{ x: number; y: number } | undefined>(undefined);

  const at = (event: PointerEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return { x: within((event.clientX - box.left) / box.width, 0, 1), y: within((event.clientY - box.top) / box.height, 0, 1) };
  };
  const begin = (event: PointerEvent) => {
    if (event.target instanceof HTMLButtonElement) return;
    event.preventDefault(); // of the image
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    from.current = at(event);
    const begun = { ...from.current, width: 0, height: 0 };
    setRects((rects) => [...rects, begun]); // of the latest: a machine that is slow draws none between two events
  };
  const go = (event: PointerEvent) => {
    const [a, b] = [from.current, at(event)];
    if (!a) return;
    const drawn = { x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y) };
    setRects((rects) => [...rects.slice(0, -1), drawn]);
  };
  const end = () => {
    if (from.current) setRects((rects) => rects.filter(({ width, height }) => width >= STEP / 4 && height >= STEP / 4)); // a mere click draws none
    from.current = undefined;
  };
  const remove = (i: number) => setRects((rects) => rects.filter((_, k) => k !== i));
  const onKey = (event: KeyboardEvent, i: number) => {
    const [dx, dy] = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key] ?? [];
    if (event.key === 'Delete' || event.key === 'Backspace') return remove(i);
    if (dx === undefined || dy === undefined) return;
    event.preventDefault();
    setRects((rects) =>
      rects.map((r, k) => {
        if (k !== i) return r;
        if (event.shiftKey) return { ...r, width: within(r.width + dx, STEP, 1 - r.x), height: within(r.height + dy, STEP, 1 - r.y) };
        return { ...r, x: within(r.x + dx, 0, 1 - r.width), y: within(r.y + dy, 0, 1 - r.height) };
      }),
    );
  };
  const send = async () => {
    const params = { path: { id: photo.report_id, photo_id: photo.id } };
    await must(reportService.POST('/reports/{id}/photos/{photo_id}/redact', { params, body: { rects } }));
    onDone();
  };

  return (
    <Modal title={t('redact')} onClose={onClose}>
      <p class="quiet">{t('redact.hint')}</p>
      <div class="redact" onPointerDown={begin} onPointerMove={go} onPointerUp={end} onPointerCancel={end}>
        <img
          src={`/photos/${photo.id}/1024.jpg`}
          alt={photo.alt || t('photos.photo')}
          width={photo.width}
          height={photo.height}
          draggable={false}
        />
        {rects.map(({ x, y, width, height }, i) => (
          <button
            key={i}
            type="button"
            aria-label={t('redact.part', { n: i + 1 })}
            title={t('redact.keys')}
            onKeyDown={(event) => onKey(event, i)}
            ref={(element) => {
              // A style attribute would be against the page's policy; this is not.
              if (element)
                Object.assign(element.style, {
                  left: `${x * 100}%`,
                  top: `${y * 100}%`,
                  width: `${width * 100}%`,
                  height: `${height * 100}%`,
                });
            }}
          />
        ))}
      </div>
      <Fault error={error} />
      <div class="bar">
        <button type="button" class="primary" disabled={busy || rects.length === 0} onClick={() => void run(send)}>
          {t('redact.do')}
        </button>
        <button type="button" data-first onClick={() => setRects((rects) => [...rects, { x: 0.4, y: 0.4, width: 0.2, height: 0.2 }])}>
          {t('redact.add')}
        </button>
        {rects.length > 0 && (
          <button type="button" class="link" onClick={() => remove(rects.length - 1)}>
            {t('redact.undo')}
          </button>
        )}
      </div>
      <small class="quiet">{t('redact.keys')}</small>
    </Modal>
  );
}
