import * as v from 'valibot'
import { expression, flag, listOf, oneOf, section, text } from '../../../document/fields.ts'
import type { Mode, Reporter } from '../../../document/kind.ts'
import { notYet } from '../../../document/unsupported.ts'
import { expressionRules } from '../../block/documents/volume-fields.ts'

const sizeMatch = v.pipe(
  v.string(),
  v.check(
    (value) => /^(?:==|>=|<=|>|<)?\s*\d+(?:\.\d+)?\s*(?:(?:[KMGTPkmgtp]i?[Bb]?|i[Bb]?|[Bb]))?$/.test(value.trim()),
    '{} is not a condition on a size, like ">= 10GB"',
  ),
)

/** `machine.install`: what to install on which disk. */
export const install = section({
  disk: text,
  diskSelector: section({
    size: sizeMatch,
    name: text,
    model: text,
    serial: text,
    modalias: text,
    uuid: text,
    wwid: text,
    type: oneOf('ssd', 'hdd', 'nvme', 'sd'),
    busPath: text,
    match: expression,
  }),
  extraKernelArgs: listOf(text),
  image: text,
  extensions: notYet(listOf(section({ image: text })), 'system extensions are not supported, leave the list out'),
  bootloader: notYet(flag, 'the boot loader is always installed, leave it out', { accepts: [true] }),
  wipe: flag,
  legacyBIOSSupport: flag,
  grubUseUKICmdline: flag,
})

/** Validation rules of the section. A machine with a disk needs it until installed. */
export function installRules(section: v.InferOutput<typeof install> | undefined, report: Reporter, mode: Mode): void {
  const path = ['machine', 'install']
  if (!section) {
    if (mode === 'metal') report.error(path, 'required: set the disk to install on')
    return
  }
  if (mode === 'metal' && !section.disk && !section.diskSelector) report.error([...path, 'disk'], 'a disk or a diskSelector is required')
  if (section.diskSelector?.match) expressionRules(section.diskSelector.match, 'disk', report, [...path, 'diskSelector', 'match'])
  if (section.extraKernelArgs?.length && section.grubUseUKICmdline) {
    report.error([...path, 'extraKernelArgs'], 'cannot be combined with "grubUseUKICmdline: true"')
  }
  const images = new Set<string>()
  for (const [index, { image = '' }] of (section.extensions ?? []).entries()) {
    if (images.has(image)) report.error([...path, 'extensions', index, 'image'], `${JSON.stringify(image)} is listed twice`)
    images.add(image)
  }
  if (section.extensions?.length) report.warning([...path, 'extensions'], 'deprecated: use an installer image that contains the extensions')
}
