/** CEL expressions that select links. */
import { CelEnvironment, type CelProgram } from '../../../document/cel/environment.ts'
import { matchesStars } from '../../../wire/wildcard.ts'

/** Link fields by their wire names and types. Fields of virtual links only are left out. */
const link = {
  alias: 'string',
  alt_names: 'list<string>',
  broadcast_addr: 'bytes',
  bus_path: 'string',
  driver: 'string',
  driver_version: 'string',
  firmware_version: 'string',
  flags: 'uint',
  hardware_addr: 'bytes',
  index: 'uint',
  kind: 'string',
  link_index: 'uint',
  link_state: 'bool',
  master_index: 'uint',
  mtu: 'uint',
  operational_state: 'int',
  pciid: 'string',
  permanent_addr: 'bytes',
  product: 'string',
  product_id: 'string',
  queue_disc: 'string',
  slave_kind: 'string',
  speed_megabits: 'int',
  type: 'int',
  vendor: 'string',
  vendor_id: 'string',
} as const

/** The values of a link's fields. */
export type LinkValues = Record<keyof typeof link, unknown>

const macText = (address: Uint8Array): string =>
  Buffer.from(address)
    .toString('hex')
    .replaceAll(/..(?=.)/g, '$&:')

const environment = new CelEnvironment({
  variables: { link },
  functions: { 'glob(string, string): bool': matchesStars, 'mac(bytes): string': macText },
})

/** Compiles an expression that selects links; it runs on `{ link: LinkValues }`. Throws CelError. */
export const linkCondition = (expression: string): CelProgram<boolean> => environment.condition(expression)
