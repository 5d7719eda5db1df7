/** Variables in the URL of a configuration: values that identify this machine, filled in as soon as they are known. */
import type { AnyResourceType } from '../../../cosi/resource.ts'
import type { Store } from '../../../cosi/store.ts'
import { SystemInformation } from '../../hardware/resources/system-information.ts'
import { HostnameStatus } from '../../network/resources/hostname.ts'
import { LinkStatus } from '../../network/resources/link.ts'
import { MetaKey } from '../../runtime/resources/meta.ts'

interface Variable {
  /** Its name in messages. */
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

/** Names of the variables in a URL. Throws a one-line error for an unknown one, and for an invalid URL. */
export function variablesOf(address: string): string[] {
  const names = [...explicit(address).matchAll(pattern)].map(([, name = '']) => name.toLowerCase())
  for (const name of names)
    if (!Object.hasOwn(variables, name))
      throw new Error(`read "talos.config": unknown variable "\${${name}}" in "${address}", known are ${Object.keys(variables).join(', ')}`)
  const probe = explicit(address).replaceAll(pattern, 'x')
  if (!URL.canParse(probe) || !/^(https?|tftp):\/\//i.test(probe))
    throw new Error(`read "talos.config": "${address}" is neither an http(s) or tftp address nor metal-iso nor none`)
  return [...new Set(names)]
}

/** Fills in all variables of the URL; waits for unknown values. Throws a one-line error that names them on timeout. */
export async function fillVariables(address: string, store: Store, signal: AbortSignal): Promise<string> {
  const values = await valuesOf(variablesOf(address), `fill in "${address}"`, store, signal)
  return explicit(address).replaceAll(pattern, (_, name: string) => encodeURIComponent(values[name.toLowerCase()] ?? ''))
}

/** Whether there is a variable of this name. */
export const isVariable = (name: string): boolean => Object.hasOwn(variables, name)

/** The values of variables; waits for unknown ones. Throws a one-line error that begins with `what` and names them on timeout. */
export async function valuesOf(names: readonly string[], what: string, store: Store, signal: AbortSignal): Promise<Record<string, string>> {
  const unknown = () => names.filter((name) => !variables[name]?.read(store))
  await known(names, unknown, store, signal)
  const missing = unknown()
  if (missing.length > 0) {
    const missingNames = missing.map((name) => `"\${${name}}" (${variables[name]?.means})`).join(', ')
    throw new Error(`${what}: nothing known for ${missingNames}`)
  }
  return Object.fromEntries(names.map((name) => [name, variables[name]?.read(store) ?? '']))
}

/** Waits until all values are known, or until the timeout. */
function known(names: readonly string[], unknown: () => string[], store: Store, signal: AbortSignal): Promise<void> {
  if (unknown().length === 0 || signal.aborted) return Promise.resolve()
  const { promise, resolve } = Promise.withResolvers<void>()
  const types = new Set(names.flatMap((name) => variables[name]?.from ?? []))
  const stops = [...types].map((type) => store.subscribe(type, () => unknown().length === 0 && resolve()))
  const onAbort = () => resolve()
  signal.addEventListener('abort', onAbort)
  return promise.finally(() => {
    for (const stop of stops) stop()
    signal.removeEventListener('abort', onAbort)
  })
}

/** The older form of the UUID variable: `?uuid=` without a value. */
const explicit = (address: string): string => address.replace(/([?&]uuid=)(?=&|#|$)/i, `$1\${uuid}`)
