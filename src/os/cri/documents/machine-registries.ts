import { base64, certificateAndKey, flag, listOf, mapOf, section, text } from '../../../document/fields.ts'

/** `machine.registries`: mirrors and credentials, the old way. */
export const machineRegistries = section({
  mirrors: mapOf(section({ endpoints: listOf(text), overridePath: flag, skipFallback: flag })),
  config: mapOf(
    section({
      tls: section({ clientIdentity: certificateAndKey, ca: base64, insecureSkipVerify: flag }),
      auth: section({ username: text, password: text, auth: text, identityToken: text }),
    }),
  ),
})
