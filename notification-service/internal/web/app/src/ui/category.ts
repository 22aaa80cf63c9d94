import { isWord, t } from '../lang/i18n';
import type { IconName } from './icons';

/** A category in the chosen language. The server has one name for it; a city may have categories of its own. */
export function categoryName(name: string): string {
  const key = `category-name.${name}`;
  return isWord(key) ? t(key) : name;
}

const icons: Record<string, IconName> = {
  'Roads and potholes': 'road',
  'Street lights and signals': 'lamp',
  'Waste and illegal dumping': 'bin',
  Graffiti: 'spray',
  'Parks and trees': 'tree',
  'Water and drainage': 'drop',
  Sidewalks: 'walk',
  'Traffic and parking': 'car',
  Animals: 'paw',
  'Public safety and noise': 'noise',
};

/** The picture of a category, or a neutral one. */
export function categoryIcon(name: string): IconName {
  return icons[name] ?? 'dots';
}
