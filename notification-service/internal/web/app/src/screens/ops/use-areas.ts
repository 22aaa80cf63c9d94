import { useEffect, useState } from 'preact/hooks';

import { must, reportService } from '../../api/client';

/** A part of the city, as lists show it. */
export interface Area {
  code: string;
  name: string;
}

/** The areas to choose from; none until they are known. Without names their codes are shown. */
export function useAreas(): Area[] {
  const [areas, setAreas] = useState<Area[]>([]);
  useEffect(() => {
    must(reportService.GET('/areas', { params: { query: { geometry: 'none' } } }))
      .then(({ features }) => setAreas(features.map(({ properties }) => properties)))
      .catch(() => {});
  }, []);
  return areas;
}

/** Areas to choose from, with one that is chosen and perhaps no longer there. */
export const optionsOf = (areas: Area[], chosen: string): [string, string][] => [
  ...areas.map(({ code, name }): [string, string] => [code, name]),
  ...(chosen === '' || areas.some(({ code }) => code === chosen) ? [] : [[chosen, chosen] as [string, string]]),
];
