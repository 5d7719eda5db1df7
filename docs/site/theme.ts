/** The site's theme: VitePress' own, with the colour of the icon. */
import DefaultTheme from 'vitepress/theme'
import './theme.css'

export default DefaultTheme
