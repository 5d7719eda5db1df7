import { described, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** More authorities that the node trusts. */
export const TrustedRootsConfig = defineDocument({
  kind: 'TrustedRootsConfig',
  description:
    'More authorities that the node trusts, besides the public ones: for pulls of images, downloads, discovery and the kubelet. Takes effect without a restart of the node.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    certificates: described(text, 'Certificates in PEM, one after the other.'),
  }),
  rules({ name, certificates = '' }, report) {
    if (!name) report.error(['name'], 'a name is required')
    if (!certificates.includes('-----BEGIN CERTIFICATE-----')) report.error(['certificates'], 'certificates in PEM are required')
  },
})
