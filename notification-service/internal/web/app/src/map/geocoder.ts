/** Addresses from the city's geocoder, which our own service asks. It is an addition: where it fails, the map's names are there. */
import { notificationService } from '../api/client';
import { language } from '../lang/i18n';
import { config } from '../state/config';
import { distance, type Position } from './address';
import type { Found } from './search';

/** A shorter text says too little. */
const LETTERS = 3;
/** The same name this near is the same place. */
const SAME_M = 1_500;

/** Addresses and places with these words in their names; none where the city has no geocoder. */
export async function findAddresses(text: string): Promise<Found[]> {
  const q = text.trim();
  if (!config.map.geocoder || q.length < LETTERS) return [];
  return places(notificationService.GET('/map/places', { params: { query: { q, language: language.value } } }));
}

/** The place at a position, such as “Jalan Salak 12, Babakan”; empty where nothing is known. */
export async function addressAt({ latitude, longitude }: Position): Promise<string> {
  if (!config.map.geocoder) return '';
  const query = { latitude, longitude, language: language.value };
  const [place] = await places(notificationService.GET('/map/places/at', { params: { query } }));
  return place ? [place.name, place.quarter].filter((part) => part !== '').join(', ') : '';
}

interface Answer {
  data?: { places: { name: string; context: string; latitude: number; longitude: number }[] };
}

async function places(asked: Promise<Answer>): Promise<Found[]> {
  const { data } = await asked.catch((): Answer => ({}));
  return (data?.places ?? []).map(({ name, context, latitude, longitude }) => ({
    name,
    quarter: context,
    position: { latitude, longitude },
  }));
}

/** Results of the map, then additional ones of the geocoder. */
export function joined(found: Found[], others: Found[]): Found[] {
  const isNew = (place: Found) =>
    !found.some(
      (known) => known.name === place.name && distance(place.position, [[known.position.longitude, known.position.latitude]]) < SAME_M,
    );
  return [...found, ...others.filter(isNew)];
}
