e: tpl
