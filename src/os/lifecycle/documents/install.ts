import * as v from 'valibot'
import { described, expression, flag, listOf, oneOf, section, text } from '../../../document/fields.ts'
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
  disk: described(text, 'The disk the system is put on.'),
  diskSelector: described(
    section({
      size: described(sizeMatch, 'How large, like >= 100GB.'),
      name: described(text, 'Its name in the kernel.'),
      model: described(text, 'Its model.'),
      serial: described(text, 'Its serial number.'),
      modalias: described(text, 'How the kernel finds its driver.'),
      uuid: described(text, 'Its UUID.'),
      wwid: described(text, 'Its world-wide name.'),
      type: described(oneOf('ssd', 'hdd', 'nvme', 'sd'), 'What it is made of.'),
      busPath: described(text, 'Where it sits on its bus; * stands for anything.'),
      match: described(expression, 'An expression over disks that is true for the right one.'),
    }),
    'Picks the disk by what it is.',
  ),
  extraKernelArgs: described(listOf(text), "More for the kernel's command line; with - in front, less."),
  image: described(text, 'The image the system is installed from.'),
  extensions: described(
    notYet(
      listOf(section({ image: described(text, 'The image.') })),
      'build an installer with them: ./mkimage.sh --system-extension-image',
    ),
    'More for the system, each an image.',
  ),
  bootloader: described(
    notYet(flag, 'the boot loader is always installed, leave it out', { accepts: [true] }),
    'Whether a boot loader is installed.',
  ),
  wipe: described(flag, 'Empties the whole disk first.'),
  legacyBIOSSupport: described(flag, 'Marks the partition so that old firmware starts it.'),
  grubUseUKICmdline: described(flag, 'Takes the command line of the image and not one of its own.'),
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
