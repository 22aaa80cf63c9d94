import type { Plugin } from 'vite';

export function maplibre(): Plugin;
