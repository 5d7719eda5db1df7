import type { Kernel } from '../../kernel.ts'
import type { Source } from './source.ts'

/** Where an image carries a configuration of its own. */
export const embeddedPath = '/usr/local/etc/talos/config.yaml'

/** The configuration the image was made with. */
export const embedded = ({ files }: { files: Pick<Kernel['files'], 'readTextIfThere'> }): Source => ({
  name: 'embedded',
  retried: false,
  look: () => files.readTextIfThere(embeddedPath),
})
