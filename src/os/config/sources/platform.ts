/** The configuration from the platform, which the kernel command line or the environment names. */
import type { Store } from '../../../cosi/store.ts'
import { type Parameter, parameterValues } from '../../../wire/command-line.ts'
import type { Outbound } from '../../outbound.ts'
import { diskLabel, readConfigDisk } from './config-disk.ts'
import { DeviceLogin, deviceFlowOf } from './device-flow.ts'
import { download } from './download.ts'
import type { Source } from './source.ts'
import { variablesOf } from './variables.ts'

/** The environment of init. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Platforms that provide configurations. */
export interface Clouds {
  readonly names: readonly string[]
  /** The platform's configuration; undefined when there is none. */
  userData(name: string, commandLine: string, signal: AbortSignal): Promise<string | undefined>
}

const noClouds: Clouds = { names: [], userData: async () => undefined }

interface Dependencies {
  readonly kernel: Parameters<typeof readConfigDisk>[0]
  readonly store: Store
  /** The kernel command line. */
  readonly commandLine?: string
  readonly clouds?: Clouds
  readonly outbound: Pick<Outbound, 'fetch'>
}

/** A container's: `USERDATA` in its environment, base64 of YAML. */
export const containerPlatform = (environment: Environment): Source => ({
  name: 'container',
  retried: false,
  look() {
    const data = environment.USERDATA
    if (!data) return undefined
    if (!/^[A-Za-z0-9+/\s]+(?:={1,2}\s*)?$/.test(data)) throw new Error('read USERDATA: it is not base64')
    return Buffer.from(data, 'base64').toString()
  },
})

/** A machine's: where `talos.config` points, else the platform's. */
export function machinePlatform(
  { kernel, store, outbound, commandLine = '', clouds = noClouds }: Dependencies,
  parameters: readonly Parameter[],
  environment: Environment,
): Source {
  const name = environment.PLATFORM || parameterValues(parameters, 'talos.platform').at(-1) || ''
  const where = parameterValues(parameters, 'talos.config').at(-1) ?? ''
  let login: DeviceLogin | undefined
  const wrong =
    problem(name, where, clouds) ??
    problemOf(() => {
      login = loginFor(where, parameters, outbound)
    })
  return {
    name: name || 'platform',
    // An error on the command line is permanent.
    retried: wrong === undefined,
    look(look) {
      if (wrong) throw wrong
      if (where === 'none') return undefined
      if (where === '' || where === 'guestinfo')
        return clouds.names.includes(name) ? clouds.userData(name, commandLine, look.signal) : undefined
      return where === diskLabel ? readConfigDisk(kernel, store, look) : download(where, { store, outbound, login }, look)
    },
  }
}

function problem(name: string, where: string, { names }: Clouds): Error | undefined {
  if (name === '') return new Error('read platform: "talos.platform" is not on the kernel command line')
  if (names.length > 0 && name !== 'metal' && !names.includes(name))
    return new Error(`read platform: "${name}" is not known: use one of metal, ${names.join(', ')}`)
  if (where === 'guestinfo' && name !== 'vmware') return new Error(`read "talos.config": "guestinfo" is for vmware, not for "${name}"`)
  if (['', 'none', 'guestinfo', diskLabel].includes(where)) return undefined
  return problemOf(() => variablesOf(where))
}

/** The authorization of the download, if one is requested. Throws for parameters that cannot be, and for a server that takes none. */
function loginFor(where: string, parameters: readonly Parameter[], outbound: Pick<Outbound, 'fetch'>): DeviceLogin | undefined {
  const flow = deviceFlowOf(parameters)
  if (flow && /^tftp:/i.test(where)) throw new Error('read "talos.config.oauth.client_id": a TFTP server takes no authorization')
  return flow && new DeviceLogin(flow, outbound)
}

function problemOf(read: () => unknown): Error | undefined {
  try {
    read()
    return undefined
  } catch (error) {
    return error as Error
  }
}
