import { version } from '../package.json'

declare const ICHOR_SHA: string | undefined
declare const ICHOR_BUILT: string | undefined

/** Name and version of this binary; the build sets commit and build time. */
export const release = {
  name: 'Ichor',
  tag: `v${version}`,
  sha: typeof ICHOR_SHA === 'string' ? ICHOR_SHA : 'undefined',
  built: typeof ICHOR_BUILT === 'string' ? ICHOR_BUILT : '',
  runtime: `bun${Bun.version}`,
  os: process.platform,
  arch: process.arch === 'x64' ? 'amd64' : process.arch,
}
