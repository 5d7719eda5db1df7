import { homedir } from 'node:os'
import { join } from 'node:path'

/** The configuration that a pod is given; it is read, never written. */
export const podTalosconfig = '/var/run/secrets/talos.dev/config'

/** Where the client configuration lives, in order of preference: the flag, $TALOSCONFIG, $TALOS_HOME or ~/.talos, a pod's secret. */
export function talosconfigPaths(flag: string | undefined, env: Readonly<Record<string, string | undefined>>): string[] {
  if (flag) return [flag]
  if (env.TALOSCONFIG) return [env.TALOSCONFIG]
  return [join(env.TALOS_HOME || join(env.HOME || homedir(), '.talos'), 'config'), podTalosconfig]
}
