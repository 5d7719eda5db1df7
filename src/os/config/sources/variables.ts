/** Variables in the address of a configuration: what tells this machine from others, filled in as soon as it is known. */
import type { AnyResourceType } from '../../../cosi/resource.ts'
import type { Store } from '../../../cosi/store.ts'
import { SystemInformation } from '../../hardware/resources/system-information.ts'
import { HostnameStatus } from '../../network/resources/hostname.ts'
import { LinkStatus } from '../../network/resources/link.ts'
import { MetaKey } from '../../runtime/resources/meta.ts'

interface Variable {
  /** What it is, for people. */
  readonly means: string
  readonly from: AnyResourceType
  read(store: Store): string | undefined
}

/** META tag 11, the download code. */
const downloadCode = '0x0b'

const variables: Readonly<Record<string, Variable>> = {
  uuid: { means: 'UUID of the machine', from: SystemInformation, read: (store) => systemInformation(store)?.uuid },
  serial: { means: 'serial number of the machine', from: SystemInformation, read: (store) => systemInformation(store)?.serialnumber },
  mac: { means: 'hardware address of a physical link', from: LinkStatus, read: firstMac },
  hostname: { means: 'host name', from: HostnameStatus, read: (store) => store.get(HostnameStatus, 'hostname')?.spec.hostname },
  code: { means: 'download code in META', from: MetaKey, read: (store) => store.get(MetaKey, downloadCode)?.spec.value },
}

const systemInformation = (store: Store) => store.list(SystemInformation)[0]?.spec

function firstMac(store: Store): string | undefined {
  const physical = store.list(LinkStatus).filter(({ spec }) => spec.type === 'ether' && spec.kind === '')
  return physical.sort((a, b) => a.spec.index - b.spec.index).map(({ spec }) => spec.permanentAddr || spec.hardwareAddr)[0]
}

const pattern = /\$\{(\w+)\}/g

/** Names of the variables in an address. Throws one line for an unknown one, and for what is no address. */
export function variablesOf(address: string): string[] {
  const names = [...explicit(address).matchAll(pattern)].map(([, name = '']) => name.toLowerCase())
  for (const name of names)
    if (!Object.hasOwn(variables, name))
      throw new Error(`read "talos.config": unknown variable "\${${name}}" in "${address}", known are ${Object.keys(variables).join(', ')}`)
  const probe = explicit(address).replaceAll(pattern, 'x')
  if (!URL.canParse(probe) || !/^https?:\/\//i.test(probe))
    throw new Error(`read "talos.config": "${address}" is neither an http(s) address nor metal-iso nor none`)
  return [...new Set(names)]
}

/** The address with every variable filled in; waits for those not known yet. Throws one line that names them when time is up. */
export async function fillVariables(address: string, store: Store, signal: AbortSignal): Promise<string> {
  const names = variablesOf(address)
  const unknown = () => names.filter((name) => !variables[name]!.read(store))
  await known(names, unknown, store, signal)
  const missing = unknown()
  if (missing.length > 0) {
    const told = missing.map((name) => `"\${${name}}" (${variables[name]!.means})`).join(', ')
    throw new Error(`fill in "${address}": nothing known for ${told}`)
  }
  return explicit(address).replaceAll(pattern, (_, name: string) => encodeURIComponent(variables[name.toLowerCase()]!.read(store)!))
}

/** Waits until nothing is unknown or the time is up. */
function known(names: readonly string[], unknown: () => string[], store: Store, signal: AbortSignal): Promise<void> {
  if (unknown().length === 0 || signal.aborted) return Promise.resolve()
  const { promise, resolve } = Promise.withResolvers<void>()
  const types = new Set(names.map((name) => variables[name]!.from))
  const stops = [...types].map((type) => store.subscribe(type, () => unknown().length === 0 && resolve()))
  const onAbort = () => resolve()
  signal.addEventListener('abort', onAbort)
  return promise.finally(() => {
    for (const stop of stops) stop()
    signal.removeEventListener('abort', onAbort)
  })
}

/** An older way to ask for the UUID: `?uuid=` with nothing behind it. */
const explicit = (address: string): string => address.replace(/([?&]uuid=)(?=&|#|$)/i, `$1\${uuid}`)
