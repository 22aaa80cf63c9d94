import type { Plugin } from 'vite';

export function thirdPartyNotices(): Plugin;
