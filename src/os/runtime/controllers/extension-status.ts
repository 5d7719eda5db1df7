import * as v from 'valibot'
import { parse } from 'yaml'
import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { ExtensionStatus } from '../resources/extension-status.ts'

/** The list that ./mkimage.sh leaves in an image; empty without extensions. */
const path = '/etc/extensions.yaml'
const limit = 1 << 20

const text = v.optional(v.string(), '')

const Extensions = v.object({
  layers: v.array(
    v.object({
      image: v.string(),
      metadata: v.object({
        name: v.string(),
        version: v.string(),
        author: text,
        description: text,
        compatibility: v.optional(v.object({ talos: v.object({ version: text }) }), { talos: { version: '' } }),
        extraInfo: v.optional(v.string()),
      }),
    }),
  ),
})

/** The extensions of the image, by the number that they have there; read once, because the image is read-only. */
export const observeExtensions = ({ files }: { files: Pick<Kernel['files'], 'readTextIfThere'> }): Controller =>
  defineController({
    name: 'runtime.ExtensionStatusController',
    inputs: {},
    outputs: { extensions: exclusive(ExtensionStatus) },
    reconcile({ extensions, log }) {
      const list = files.readTextIfThere(path, { limit })
      if (!list) return
      const { success, output } = v.safeParse(Extensions, parse(list, { maxAliasCount: 0 }))
      if (!success) return log.warn('list of system extensions not readable', { path })
      for (const { image, metadata } of output.layers) {
        const { extraInfo, ...rest } = metadata
        extensions.put(image.replace(/\.sqsh$/, ''), { image, metadata: { ...rest, ...(extraInfo !== undefined && { extraInfo }) } })
      }
    },
  })
