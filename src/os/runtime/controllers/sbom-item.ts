import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { Kernel } from '../../kernel.ts'
import { SBOMItem } from '../resources/sbom-item.ts'
import { type SpdxItem, spdxItems } from '../spdx.ts'

/** Documents of the image, and those that extensions add, which may be absent. */
const folders = [
  { path: '/usr/share/spdx', extension: false },
  { path: '/usr/local/share/spdx', extension: true },
]
/** The image's own entry in its document, and the name that it gets. */
const ownEntry = { from: 'ichor-rootfs', to: 'ichor' }
/** Bytes of a document: the image's has 0.3 MB. */
const limit = 16 << 20

type Files = Pick<Kernel['files'], 'exists' | 'list' | 'readText'>

/** What the image and its extensions are made of, from their SPDX documents; read once, because the image is read-only. */
export const observeSbom = ({ files }: { files: Files }): Controller =>
  defineController({
    name: 'runtime.SBOMItemController',
    inputs: {},
    outputs: { items: exclusive(SBOMItem) },
    reconcile({ items, log }) {
      const found = new Map<string, SpdxItem & { extension: boolean }>()
      for (const { path, extension } of folders) {
        for (const item of itemsBelow(files, path, log)) {
          const name = item.name === ownEntry.from ? ownEntry.to : item.name
          const { cpes = [], purls = [] } = found.get(name) ?? {}
          found.set(name, { ...item, name, extension, cpes: [...cpes, ...item.cpes], purls: [...purls, ...item.purls] })
        }
      }
      for (const { extension, cpes, purls, ...item } of found.values())
        items.put(item.name, {
          ...item,
          ...(cpes.length > 0 && { cpes }),
          ...(purls.length > 0 && { purls }),
          ...(extension && { extension }),
        })
    },
  })

/** The packages of all documents in a folder. A damaged document of one extension does not hide those of the others. */
function itemsBelow(files: Files, folder: string, log: Logger): SpdxItem[] {
  if (!files.exists(folder)) return []
  const documents = files.list(folder).filter((name) => name.endsWith('.spdx.json'))
  return documents.sort().flatMap((name) => {
    const path = `${folder}/${name}`
    try {
      return spdxItems(files.readText(path, { limit }))
    } catch (error) {
      log.warn('SPDX document not readable', { path, error })
      return []
    }
  })
}
