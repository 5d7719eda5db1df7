/** Fields common to all volume documents. */
import {
  byteSize,
  byteSizeOrPercent,
  described,
  expression,
  flag,
  integer,
  listOf,
  oneOf,
  section,
  text,
  unsigned,
} from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'
import type { Path } from '../../../document/path.ts'
import { parseByteSize } from '../../../document/quantity.ts'
import { performanceOptions } from '../../../wire/luks2/crypt-table.ts'
import { parseKmsEndpoint, siblingEndpoint } from '../../../wire/luks2/kms-endpoint.ts'
import { type Cipher, ciphers, encryptionProviders, mostSlots, sectorSizes } from '../../../wire/luks2/metadata.ts'
import { expressionProblem } from './expression.ts'

/** Location and size of a volume. */
export const provisioning = section({
  diskSelector: described(
    section({ match: described(expression, 'An expression over disks that is true for the right one.') }),
    'Picks the disk by what it is.',
  ),
  grow: described(flag, 'Whether it grows when there is room.'),
  minSize: described(byteSize, 'The least that is enough.'),
  maxSize: described(byteSizeOrPercent, 'The most it takes.'),
})

/** Describes the endpoint of a KMS. */
export const kmsEndpointText =
  'Its address: "https://host:port" with TLS, "grpc://host:port" without; "sibling://" stands for the control planes of the cluster.'

/** Encryption of a volume and its keys. */
export const encryption = section({
  provider: described(oneOf(...encryptionProviders), 'How it is encrypted: luks2.'),
  keys: described(
    listOf(
      section({
        slot: described(integer, 'The place of the key.'),
        static: described(section({ passphrase: described(text, 'The passphrase itself.') }), 'A passphrase.'),
        nodeID: described(section({}), 'Derived from the UUID of the machine and the name of the volume.'),
        kms: described(section({ endpoint: described(text, kmsEndpointText) }), 'Sealed by a server on the network.'),
        tpm: described(
          section({
            options: described(
              section({ pcrs: described(listOf(integer), 'PCRs whose values must stay. Without options: 7, the state of Secure Boot.') }),
              'What it is sealed to besides the signed measurements of the image.',
            ),
            checkSecurebootStatusOnEnroll: described(flag, 'Refuses to seal while Secure Boot is off.'),
          }),
          'Sealed by the TPM of the machine, for images whose measurements the maker of the running one signed.',
        ),
        lockToState: described(flag, 'Binds it to what is on STATE.'),
      }),
    ),
    'Keys, each of which opens it.',
  ),
  cipher: described(oneOf(...(Object.keys(ciphers) as Cipher[])), 'The cipher.'),
  keySize: described(unsigned(32), 'Bits of the key.'),
  blockSize: described(unsigned(64), 'Bytes of a block.'),
  options: described(listOf(text), 'How the kernel schedules encryption.'),
})

interface Provisioning {
  diskSelector?: { match?: string | undefined } | undefined
  minSize?: string | undefined
  maxSize?: string | undefined
}

interface Encryption {
  provider?: string | undefined
  cipher?: string | undefined
  keySize?: number | undefined
  blockSize?: number | undefined
  options?: readonly string[] | undefined
  keys?:
    | {
        slot?: number | undefined
        static?: { passphrase?: string | undefined } | undefined
        nodeID?: object | undefined
        kms?: { endpoint?: string | undefined } | undefined
        tpm?: { options?: { pcrs?: number[] | undefined } | undefined; checkSecurebootStatusOnEnroll?: boolean | undefined } | undefined
      }[]
    | undefined
}

/** Validation rules of a provisioning section. */
export function provisioningRules(section: Provisioning, report: Reporter, { required }: { required?: 'sizes' } = {}): void {
  const { diskSelector, minSize, maxSize } = section
  if (required && !diskSelector?.match)
    report.error(['provisioning', 'diskSelector', 'match'], 'an expression that selects the disk is required')
  if (diskSelector?.match) expressionRules(diskSelector.match, 'disk', report, ['provisioning', 'diskSelector', 'match'])
  if (required && !minSize && !maxSize) report.error(['provisioning'], 'minSize or maxSize is required')
  const least = parseByteSize(minSize ?? '')
  const most = parseByteSize(maxSize ?? '')
  if (least !== undefined && most !== undefined && least > most)
    report.error(['provisioning', 'minSize'], `${minSize} is more than maxSize ${maxSize}`)
}

/** Validation rules of an expression about disks or volumes. */
export function expressionRules(expression: string, about: 'disk' | 'volume', report: Reporter, path: Path): void {
  const problem = expressionProblem(expression, about)
  if (problem) report.error(path, `${JSON.stringify(expression)} does not select a ${about}: ${problem}`)
}

/** Validation rules of an encryption section. What the kernel would reject when the volume is created is rejected here. */
export function encryptionRules(section: Encryption, report: Reporter, path: Path = ['encryption']): void {
  const { provider, keys = [] } = section
  cipherRules(section, report, path)
  if (provider !== 'luks2') report.error([...path, 'provider'], 'the provider is required: luks2')
  if (keys.length === 0) report.error([...path, 'keys'], 'at least one key is required')
  const slots = new Set<number>()
  for (const [index, key] of keys.entries()) {
    const at = [...path, 'keys', index]
    if (key.slot !== undefined && slots.has(key.slot)) report.error([...at, 'slot'], `slot ${key.slot} is used twice`)
    slots.add(key.slot ?? 0)
    if (key.slot !== undefined && (key.slot < 0 || key.slot >= mostSlots))
      report.error([...at, 'slot'], `slots must be from 0 to ${mostSlots - 1}: ${key.slot}`)
    if (key.static && !key.static.passphrase) report.error([...at, 'static', 'passphrase'], 'a passphrase is required')
    if (key.kms && key.kms.endpoint !== siblingEndpoint && !parseKmsEndpoint(key.kms.endpoint ?? ''))
      report.error([...at, 'kms', 'endpoint'], 'an endpoint is required: https://host:port, grpc://host:port or sibling://')
    if (!key.static && !key.nodeID && !key.kms && !key.tpm) report.error(at, 'a key needs one of static, nodeID, kms and tpm')
    for (const pcr of key.tpm?.options?.pcrs ?? []) {
      if (pcr < 0 || pcr > 23) report.error([...at, 'tpm', 'options', 'pcrs'], `PCRs must be from 0 to 23: ${pcr}`)
    }
  }
}

function cipherRules({ cipher = 'aes-xts-plain64', keySize, blockSize, options = [] }: Encryption, report: Reporter, path: Path): void {
  const sizes: readonly number[] | undefined = cipher in ciphers ? ciphers[cipher as Cipher] : undefined
  if (!sizes) report.error([...path, 'cipher'], `there is no cipher "${cipher}", there are ${Object.keys(ciphers).join('; ')}`)
  const bits = sizes?.map((bytes) => bytes * 8)
  if (keySize && bits && !bits.includes(keySize)) report.error([...path, 'keySize'], `${cipher} has keys of ${bits.join(' or ')} bits`)
  if (blockSize && !sectorSizes.some((size) => size === blockSize))
    report.error([...path, 'blockSize'], `blocks have ${sectorSizes.join(', ')} bytes`)
  for (const [index, option] of options.entries())
    if (!performanceOptions.includes(option))
      report.error([...path, 'options', index], `there is no option "${option}", there are ${performanceOptions.join(', ')}`)
}

/** Validation rules of volume names. With a prefix they become partition labels, which hold 36 characters. */
export function volumeNameRules(name: string | undefined, report: Reporter, longest = 34): void {
  if (!name) report.error(['name'], 'a name is required')
  else if (name.length > longest) report.error(['name'], `longer than ${longest} characters: ${name.length}`)
  else if (!/^[A-Za-z0-9-]+$/.test(name)) report.error(['name'], `${JSON.stringify(name)} may hold only letters, digits and dashes`)
}
