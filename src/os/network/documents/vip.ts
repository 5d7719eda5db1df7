import { described, isIp, section, text } from '../../../document/fields.ts'
import { defineDocument, type Reporter } from '../../../document/kind.ts'

function addressAndLink({ name, link }: { name?: string | undefined; link?: string | undefined }, report: Reporter): void {
  if (!name || !isIp(name)) report.error(['name'], 'the name has to be the shared IP address')
  if (!link) report.error(['link'], 'the link that carries the address is required')
}

/** Configures an address shared by control plane nodes, announced on the local network. */
export const Layer2VIPConfig = defineDocument({
  kind: 'Layer2VIPConfig',
  description: 'An address shared by control plane nodes, announced on the local network.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    link: described(text, 'The link.'),
  }),
  rules: addressAndLink,
})

/** Configures an address shared by control plane nodes, moved through a cloud API. */
export const HCloudVIPConfig = defineDocument({
  kind: 'HCloudVIPConfig',
  description: "An address shared by control plane nodes, moved through the cloud's API.",
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    link: described(text, 'The link.'),
    apiToken: described(text, 'The token of the API, with the right to read and write.'),
  }),
  rules(vip, report) {
    addressAndLink(vip, report)
    if (!vip.apiToken) report.error(['apiToken'], 'a token for the API is required')
  },
})
