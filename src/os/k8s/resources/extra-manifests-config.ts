import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

const hidden = '# only os:admin may read this\n'

/** Manifests to apply beside the built-in ones. */
export const ExtraManifestsConfig = defineResource({
  type: 'ExtraManifestsConfigs.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'ExtraManifestsConfig',
  spec: v.object({
    extraManifests: v.optional(
      v.array(
        v.object({
          name: v.string(),
          url: v.string(),
          priority: v.string(),
          extraHeaders: v.optional(v.record(v.string(), v.string()), {}),
          inlineManifest: v.string(),
        }),
      ),
      [],
    ),
  }),
  // Headers carry credentials, and inline manifests may be Secrets.
  redacted: ({ extraManifests }) => ({
    extraManifests: extraManifests.map(({ extraHeaders, inlineManifest, ...rest }) => ({
      ...rest,
      extraHeaders: Object.fromEntries(Object.keys(extraHeaders).map((name) => [name, ''])),
      inlineManifest: inlineManifest && hidden,
    })),
  }),
})
