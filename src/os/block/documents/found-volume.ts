import { described, expression, flag, oneOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { expressionRules, volumeNameRules } from './volume-fields.ts'

const mount = {
  readOnly: described(flag, 'Nothing can be written.'),
  disableAccessTime: described(flag, 'Does not note when files were read.'),
  secure: described(flag, 'Nothing on it can be run or be a device.'),
}

/** Configures an existing volume. */
export const ExistingVolumeConfig = defineDocument({
  kind: 'ExistingVolumeConfig',
  description: 'An existing volume, located by a selector.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    discovery: described(
      section({
        volumeSelector: described(
          section({ match: described(expression, 'An expression over volumes that is true for the right one.') }),
          'Which volume.',
        ),
      }),
      'How it is found.',
    ),
    mount: described(section(mount), 'How it is mounted.'),
  }),
  rules({ name, discovery }, report) {
    volumeNameRules(name, report, Number.POSITIVE_INFINITY)
    if (!discovery?.volumeSelector?.match) {
      report.error(['discovery', 'volumeSelector', 'match'], 'an expression that selects the volume is required')
    } else expressionRules(discovery.volumeSelector.match, 'volume', report, ['discovery', 'volumeSelector', 'match'])
  },
})

/** Configures a volume shared by the hypervisor's host. */
export const ExternalVolumeConfig = defineDocument({
  kind: 'ExternalVolumeConfig',
  description: 'A volume that the host shares with the virtual machine.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    filesystemType: described(oneOf('virtiofs'), 'The kind of file system.'),
    mount: described(
      section({
        ...mount,
        virtiofs: described(section({ tag: described(text, 'What the host calls it.') }), 'A folder of the host of this virtual machine.'),
      }),
      'How it is mounted.',
    ),
  }),
  rules({ name, filesystemType, mount }, report) {
    volumeNameRules(name, report)
    if (!filesystemType) report.error(['filesystemType'], 'the file system type is required: virtiofs')
    if (!mount?.virtiofs?.tag) report.error(['mount', 'virtiofs', 'tag'], 'the tag of the share is required')
  },
})
