import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import type { Report } from '../../api/client';
import { Moderation } from '../../moderation/moderation';
import { Gallery } from '../../photos/gallery';
import type { OpenReport } from '../../state/report';
import { moderates, worksOn } from '../../state/scope';
import { Fault } from '../../ui/problem';
import { StatusForm } from './status-form';

interface Props {
  open: OpenReport;
  report: Report;
  /** Between the photos and the acts. */
  children: ComponentChildren;
}

/** The photos of a report and the acts on it, as officials have them: as everybody, if another department has the report. */
export function ForOfficials({ open, report, children }: Props) {
  const [works, setWorks] = useState(false);
  const [error, setError] = useState<unknown>();
  const read = () => {
    let latest = true;
    worksOn(report.id).then(
      (found) => {
        if (!latest) return;
        setWorks(found);
        setError(undefined);
      },
      (failure: unknown) => latest && setError(failure),
    );
    return () => {
      latest = false;
      setWorks(false);
    };
  };
  useEffect(read, [report.id]);
  return (
    <>
      <Gallery report={report} rights={works ? (moderates() ? 'moderate' : 'work') : undefined} />
      {children}
      {works && (
        <>
          {!report.hidden_reason && <StatusForm open={open} report={report} />}
          <Moderation report={report} onDone={() => void open.load()} />
        </>
      )}
      <Fault error={error} retry={() => void read()} />
    </>
  );
}
