import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { declared, find } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { ImageVerificationConfig } from '../../cri/documents/image-verification.ts'
import { ImageVerificationRule } from '../resources/image-verification-rule.ts'

/** The operator's rules in order. The first rule that matches an image decides. */
export const configImageVerification: Controller = defineController({
  name: 'security.ImageVerificationConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { rules: exclusive(ImageVerificationRule) },
  reconcile({ config, rules }) {
    const given = find(declared(config.get('v1alpha1')), ImageVerificationConfig)
    for (const [index, { image, skip = false, deny = false, keyless, publicKey }] of (given?.rules ?? []).entries()) {
      rules.put(String(index).padStart(4, '0'), {
        imagePattern: image,
        skip,
        deny,
        ...(keyless && { keylessVerifier: { ...keyless, issuer: keyless.issuer ?? '' } }),
        ...(publicKey && { publicKeyVerifier: { certificate: publicKey.certificate ?? '' } }),
      })
    }
  },
})
