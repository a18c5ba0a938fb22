"""The style sheet of the report's page: readable on a desktop and on a phone, light and dark."""

__all__ = ["STYLE"]

STYLE = """
:root{--paper:#fff;--card:#f5f7f9}
@media(prefers-color-scheme:dark){:root{--paper:#14191e;--card:#1d242b}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
 font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1240px;margin:0 auto;padding:24px 20px 60px}
h1{font-size:1.9rem;margin:0 0 .3em;line-height:1.2;overflow-wrap:anywhere}
h1 small{font-weight:400;color:var(--faint);font-size:1.2rem}
h2{font-size:1.25rem;margin:2em 0 .6em}
h3{font-size:1rem;margin:0 0 .5em}
.lead{margin:0;max-width:75ch}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:20px 0}
.card{background:var(--card);border-radius:8px;padding:12px 14px}
.card b{display:block;font-size:1.25rem;font-variant-numeric:tabular-nums}
.card span{display:block}
.card small{color:var(--faint)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{padding:5px 12px;text-align:right;white-space:nowrap}
th{color:var(--faint);font-weight:500;border-bottom:1px solid var(--grid)}
td{border-bottom:1px solid var(--grid)}
th.l,td.l{text-align:left}
th:first-child,td:first-child{padding-left:0}
tr.host td{color:var(--faint)}
ul{padding-left:1.2em;max-width:85ch;font-size:.925rem}
li{margin:.2em 0;overflow-wrap:anywhere}
.grid{display:grid;margin-top:16px;
 grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:20px}
figure{margin:0;background:var(--card);border-radius:8px;padding:16px}
figure svg{display:block;width:100%;height:auto;max-width:620px}
figure.wide{grid-column:1/-1}
figure.wide svg{max-width:none;min-width:620px}
figcaption{color:var(--faint);font-size:.85rem;margin-top:8px;max-width:80ch}
dl{display:grid;grid-template-columns:auto 1fr;gap:4px 16px;max-width:90ch}
dt{font-weight:600}
dd{margin:0}
dt.compute{color:var(--compute)}
dt.load{color:var(--load)}
dt.drain{color:var(--drain)}
dt.latency{color:var(--latency)}
dt.wire{color:var(--wire)}
p{max-width:85ch}
@media(max-width:600px){main{padding:16px 14px 40px}h1{font-size:1.5rem}figure{padding:12px}
 .cards{grid-template-columns:1fr 1fr}.card b{font-size:1.05rem}}
"""
