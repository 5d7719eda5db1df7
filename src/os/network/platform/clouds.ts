import { platforms } from './platforms.ts'
import { openPlatform } from './transport.ts'

/** The platforms as sources of machine configuration. */
export const clouds = (parts: Omit<Parameters<typeof openPlatform>[0], 'commandLine'>) => ({
  names: Object.keys(platforms),
  userData: async (name: string, commandLine: string, signal: AbortSignal): Promise<string | undefined> =>
    platforms[name]?.userData(openPlatform({ ...parts, commandLine }, signal)),
})
