import { Command } from 'commander'
import type { CommandFactory } from '../../command-table.ts'
import { UsageError } from '../../failure.ts'

/** A deprecated command, which only names its replacement. */
function gone(name: string, instead: string): CommandFactory {
  return () =>
    new Command()
      .description(`Gone: use ${instead}.`)
      .allowUnknownOption()
      .allowExcessArguments()
      .action(() => {
        throw new UsageError(`"talosctl ${name}" is gone: use ${instead}`)
      })
}

/** talosctl disks */
export const disks = gone('disks', '"talosctl get disks", "talosctl get systemdisk" or "talosctl get discoveredvolumes"')
/** talosctl interfaces */
export const interfaces = gone('interfaces', '"talosctl get addresses" or "talosctl get links"')
/** talosctl routes */
export const routes = gone('routes', '"talosctl get routes"')
/** talosctl crashdump */
export const crashdump = gone('crashdump', '"talosctl support"')
