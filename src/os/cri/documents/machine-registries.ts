import { base64, certificateAndKey, flag, listOf, section, text } from '../../../document/fields.ts'
import { byRegistry } from './registry-name.ts'

/** `machine.registries`: mirrors and credentials in the v1alpha1 document. */
export const machineRegistries = section({
  mirrors: byRegistry(section({ endpoints: listOf(text), overridePath: flag, skipFallback: flag })),
  config: byRegistry(
    section({
      tls: section({ clientIdentity: certificateAndKey, ca: base64, insecureSkipVerify: flag }),
      auth: section({ username: text, password: text, auth: text, identityToken: text }),
    }),
  ),
})
